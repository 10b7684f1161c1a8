package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.yaml.in/yaml/v4"
)

// operator types a command.
func (m *monitored) operator(args ...string) {
	m.t.Helper()
	m.run("pullet", append(args, "--config", m.dir+"/web1/pullet.yaml")...)
}

// revoke ends the lease of a host, as its silence does.
func (m *monitored) revoke(host string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	got, err := m.client.Get(ctx, "/pullet/default/alive/"+host)
	if err == nil && len(got.Kvs) == 0 {
		err = errors.New("it is not registered")
	}
	if err == nil {
		_, err = m.client.Revoke(ctx, clientv3.LeaseID(got.Kvs[0].Lease))
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// faults brings about what the alerts are for, one after the other.
func (m *monitored) faults(cluster *cluster, stopTimer func()) {
	drifts, end := context.WithCancel(m.t.Context())
	defer end()
	go func() {
		for i := 0; drifts.Err() == nil; i++ {
			_ = os.WriteFile(m.dir+"/solo/root/etc/motd", []byte(fmt.Sprint("somebody ", i)), 0o644) // the next one does
			select {
			case <-drifts.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	m.operator("rollout", "pause", "--reason", "the shop is busy")
	m.release("repo", "two", "true")
	m.fires("a pause that lasts", "PulletStuckWait timer", "PulletStuckWait web1", "PulletBehind web1")
	m.operator("rollout", "resume")
	m.fires("changes by hand", "PulletDriftAgain solo")
	end()
	m.release("repo", "three", "test $PULLET_NODE != web1 -a $PULLET_NODE != web2")
	m.fires("a bad commit", "PulletFailing web[12]", "PulletHalted web[12]", "PulletBehind web[12]")
	m.revoke("slow") // which wakes for no other version any more
	if err := os.Rename(m.dir+"/own", m.dir+"/gone"); err != nil {
		m.t.Fatal(err)
	}
	m.fires("a repository that is away", "PulletRepositoryDown solo")
	stopTimer()
	m.fires("a timer that does not start", "PulletStale timer")
	m.fires("a host that fails for long", "PulletNoSuccess web[12]")
	m.fires("a lease that ended", "PulletLeaseLost slow")
	for range 3 { // for the dashboard
		if answer, err := http.Get("http://" + m.address("web2") + "/hooks/none"); err != nil || answer.Body.Close() != nil || answer.StatusCode != 404 {
			m.t.Error(err)
		}
		before := m.value(`sum(pullet_webhook_requests_total)`)
		m.until("a scrape", func() bool { return m.value(`sum(pullet_webhook_requests_total)`) != before })
	}
	cluster.members[0].kill(false)
	m.fires("an etcd that is away", "PulletEtcdDown web[12]")
	m.agents["web1"].kill(true)
	m.fires("an agent that was killed", "PulletAgentDown web1")
	m.allFired()
}

func (m *monitored) address(host string) string {
	text, err := os.ReadFile(filepath.Join(m.dir, host, "pullet.yaml"))
	if err != nil {
		m.t.Fatal(err)
	}
	return regexp.MustCompile(`listen: "([^"]+)"`).FindStringSubmatch(string(text))[1]
}

// allFired checks that no alert is shipped that no fault makes fire.
func (m *monitored) allFired() {
	var shipped struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	text, err := os.ReadFile("../../docs/monitoring/alerts.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &shipped)
	}
	if err != nil || len(shipped.Groups) != 1 {
		m.t.Fatal(err)
	}
	for _, rule := range shipped.Groups[0].Rules {
		if rule.Alert == "PulletDiskFull" && os.Geteuid() != 0 {
			continue // only root makes a small disk
		}
		if m.value(fmt.Sprintf(`count(max_over_time(ALERTS{alertstate="firing",alertname=%q}[1h]))`, rule.Alert)) < 1 {
			m.t.Errorf("%s never fired", rule.Alert)
		}
	}
}

// dashboard asks every query of docs/monitoring/dashboard.json: Prometheus answers, with data of what happened.
func (m *monitored) dashboard() {
	text, err := os.ReadFile("../../docs/monitoring/dashboard.json")
	if err != nil {
		m.t.Fatal(err)
	}
	asked := 0
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				visit(one)
			}
		case map[string]any:
			if query, ok := v["expr"].(string); ok {
				asked++
				m.shows(query)
			}
			if definition, ok := v["definition"].(string); ok {
				asked++
				m.lists(definition)
			}
			for _, one := range v {
				visit(one)
			}
		}
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		m.t.Fatal(err)
	}
	if visit(all); asked < 24 {
		m.t.Errorf("only %d queries were found", asked)
	}
}

// filled is a query with its variables.
func filled(query string) string {
	return strings.NewReplacer("$job", ".*", "$instance", ".*", "$__rate_interval", "5s").Replace(query)
}

// shows asks a query over the time of the test.
func (m *monitored) shows(query string) {
	var got struct {
		Data struct {
			Result []struct{ Values [][2]any }
		}
	}
	end := time.Now()
	err := m.answer("/api/v1/query_range", url.Values{
		"query": {filled(query)}, "start": {fmt.Sprint(m.began.Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {"1"},
	}, &got)
	if err != nil || len(got.Data.Result) == 0 {
		m.t.Errorf("%s: %d series, %v", query, len(got.Data.Result), err)
	}
}

// lists asks for the values of a variable.
func (m *monitored) lists(definition string) {
	parts := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(definition)
	if parts == nil {
		m.t.Fatalf("%s is no list of values", definition)
	}
	var got struct{ Data []string }
	err := m.answer("/api/v1/label/"+parts[2]+"/values", url.Values{"match[]": {filled(parts[1])}}, &got)
	if err != nil || len(got.Data) == 0 {
		m.t.Errorf("%s: %v %v", definition, got.Data, err)
	}
}
