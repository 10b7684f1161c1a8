package monitoring

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

	"github.com/pullet/pullet/internal/harness/process"
)

// operator runs a command of pullet on web1.
func (f *fleet) operator(args ...string) {
	f.t.Helper()
	f.run(f.program, append(args, "--config", f.dir+"/web1/pullet.yaml")...)
}

// revoke ends the lease of a host, as its silence does.
func (f *fleet) revoke(host string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	got, err := f.client.Get(ctx, "/pullet/default/alive/"+host)
	if err == nil && len(got.Kvs) == 0 {
		err = errors.New("it is not registered")
	}
	if err == nil {
		_, err = f.client.Revoke(ctx, clientv3.LeaseID(got.Kvs[0].Lease))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// injectAll injects the faults of all alerts, one after the other.
func (f *fleet) injectAll(etcd *process.Process, stopTimer func()) {
	drifts, end := context.WithCancel(f.t.Context())
	defer end()
	go func() {
		for i := 0; drifts.Err() == nil; i++ {
			_ = os.WriteFile(f.dir+"/solo/root/etc/motd", []byte(fmt.Sprint("somebody ", i)), 0o644) // the next one does
			select {
			case <-drifts.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	f.operator("rollout", "pause", "--reason", "the shop is busy")
	f.release("repo", "two", "true")
	f.fires("a pause that lasts", "PulletStuckWait timer", "PulletStuckWait web1", "PulletBehind web1")
	f.operator("rollout", "resume")
	f.fires("changes by hand", "PulletDriftAgain solo")
	end()
	f.release("repo", "three", "test $PULLET_NODE != web1 -a $PULLET_NODE != web2")
	f.fires("a bad commit", "PulletFailing web[12]", "PulletHalted web[12]", "PulletBehind web[12]")
	f.revoke("slow") // which wakes for no other version any more
	if err := os.Rename(f.dir+"/own", f.dir+"/gone"); err != nil {
		f.t.Fatal(err)
	}
	f.fires("a repository that is away", "PulletRepositoryDown solo")
	stopTimer()
	f.fires("a timer that does not start", "PulletStale timer")
	f.fires("a host that fails for long", "PulletNoSuccess web[12]")
	f.fires("a lease that ended", "PulletLeaseLost slow")
	for range 3 { // for the dashboard
		if answer, err := http.Get("http://" + f.address("web2") + "/hooks/none"); err != nil || answer.Body.Close() != nil ||
			answer.StatusCode != 404 {
			f.t.Error(err)
		}
		before := f.value(`sum(pullet_webhook_requests_total)`)
		f.until("a scrape", func() bool { return f.value(`sum(pullet_webhook_requests_total)`) != before })
	}
	etcd.Kill(false)
	f.fires("an etcd that is away", "PulletEtcdDown web[12]")
	f.agents["web1"].Kill(true)
	f.fires("an agent that was killed", "PulletAgentDown web1")
	f.checkAllFired()
}

// address returns the address at which the agent of a host listens.
func (f *fleet) address(host string) string {
	text, err := os.ReadFile(filepath.Join(f.dir, host, "pullet.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	return regexp.MustCompile(`listen: "([^"]+)"`).FindStringSubmatch(string(text))[1]
}

// checkAllFired checks that every alert of the module fired.
func (f *fleet) checkAllFired() {
	var shipped struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	text, err := os.ReadFile(filepath.Join(f.root, alertsFile))
	if err == nil {
		err = yaml.Unmarshal(text, &shipped)
	}
	if err != nil || len(shipped.Groups) != 1 {
		f.t.Fatal(err)
	}
	for _, rule := range shipped.Groups[0].Rules {
		if rule.Alert == "PulletDiskFull" && os.Geteuid() != 0 {
			continue // only root makes a small disk
		}
		if f.value(fmt.Sprintf(`count(max_over_time(ALERTS{alertstate="firing",alertname=%q}[1h]))`, rule.Alert)) < 1 {
			f.t.Errorf("%s never fired", rule.Alert)
		}
	}
}

// checkDashboard checks that Prometheus answers every query of the dashboard with data.
func (f *fleet) checkDashboard() {
	text, err := os.ReadFile(filepath.Join(f.root, dashboardFile))
	if err != nil {
		f.t.Fatal(err)
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
				f.checkQuery(query)
			}
			if definition, ok := v["definition"].(string); ok {
				asked++
				f.checkValues(definition)
			}
			for _, one := range v {
				visit(one)
			}
		}
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		f.t.Fatal(err)
	}
	if visit(all); asked < 24 {
		f.t.Errorf("only %d queries were found", asked)
	}
}

// filled returns a query with values for its variables.
func filled(query string) string {
	return strings.NewReplacer("$job", ".*", "$instance", ".*", "$__rate_interval", "5s").Replace(query)
}

// checkQuery checks that a query has data in the time of the test.
func (f *fleet) checkQuery(query string) {
	var got struct {
		Data struct {
			Result []struct{ Values [][2]any }
		}
	}
	end := time.Now()
	err := f.answer("/api/v1/query_range", url.Values{
		"query": {filled(query)}, "start": {fmt.Sprint(f.began.Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {"1"},
	}, &got)
	if err != nil || len(got.Data.Result) == 0 {
		f.t.Errorf("%s: %d series, %v", query, len(got.Data.Result), err)
	}
}

// checkValues checks that a variable has values.
func (f *fleet) checkValues(definition string) {
	parts := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(definition)
	if parts == nil {
		f.t.Fatalf("%s is no list of values", definition)
	}
	var got struct{ Data []string }
	err := f.answer("/api/v1/label/"+parts[2]+"/values", url.Values{"match[]": {filled(parts[1])}}, &got)
	if err != nil || len(got.Data) == 0 {
		f.t.Errorf("%s: %v %v", definition, got.Data, err)
	}
}
