package lock

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/pullet/pullet/state"
)

// The benchmarks take a fleet of virtual nodes through a rollout, and to a barrier, against one etcd in a process of
// its own. docs/scale.md says how to run them.

// hold is how long each node's step takes.
const hold = 500 * time.Millisecond

const places = 20

var sizes = []int{500, 2000, 10000}

func BenchmarkRollout(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				m := startEtcd(b)
				c := newCrowd(b, m.endpoints, n, places)
				peak, cpu := c.peak(c.fleet.Rollouts.SlotPrefix("web")), m.cpu()
				c.counter.take()
				b.StartTimer()
				began := time.Now()
				c.rollout(hold)
				took := time.Since(began)
				b.StopTimer()
				kinds := c.counter.take()
				most, made := peak()
				if most > places || made != n {
					b.Errorf("at most %d at a time, %d claims", most, made)
				}
				report(b, n, kinds, m.cpu()-cpu)
				reportOver(b, n, took)
				b.ReportMetric(float64(most), "peak-claims")
				b.Log(kinds)
				m.stop()
				b.StartTimer()
			}
		})
	}
}

func BenchmarkBarrier(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				m := startEtcd(b)
				c := newCrowd(b, m.endpoints, n, places)
				cpu := m.cpu()
				c.counter.take()
				b.StartTimer()
				c.barrier()
				b.StopTimer()
				kinds := c.counter.take()
				report(b, n, kinds, m.cpu()-cpu)
				b.ReportMetric(float64(kinds["txn run/in"])/float64(n), "arrivals/node")
				b.Log(kinds)
				m.stop()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkDocument is what others do: one document that says who holds a place, compared and swapped, and tried again
// after 20 to 200 ms. It has no queue, and its requests grow with the square of the nodes.
func BenchmarkDocument(b *testing.B) {
	for _, n := range sizes[:2] {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				m := startEtcd(b)
				c := newCrowd(b, m.endpoints, n, places)
				cpu := m.cpu()
				c.counter.take()
				b.StartTimer()
				began := time.Now()
				c.each(n, func(i int) error {
					d := document{c.nodes[i].store.Client, "/bench/fleet/document", fmt.Sprint("web", i)}
					if err := d.swap(c.ctx, true); err != nil {
						return err
					}
					time.Sleep(hold)
					return d.swap(c.ctx, false)
				})
				took := time.Since(began)
				b.StopTimer()
				kinds := c.counter.take()
				report(b, n, kinds, m.cpu()-cpu)
				reportOver(b, n, took)
				b.Log(kinds)
				m.stop()
				b.StartTimer()
			}
		})
	}
}

// document is a node at a semaphore that is one document.
type document struct {
	client    *clientv3.Client
	key, node string
}

// swap takes a place or gives it back.
func (d document) swap(ctx context.Context, take bool) error {
	for {
		got, err := d.client.Get(ctx, d.key)
		if err != nil {
			return err
		}
		held := struct {
			Max     int      `json:"max"`
			Holders []string `json:"holders"`
		}{Max: places}
		if len(got.Kvs) > 0 {
			if err := json.Unmarshal(got.Kvs[0].Value, &held); err != nil {
				return err
			}
		}
		if !take || len(held.Holders) < held.Max {
			held.Holders = without(held.Holders, d.node)
			if take {
				held.Holders = append(held.Holders, d.node)
			}
			value, err := json.Marshal(held)
			if err != nil {
				return err
			}
			done, err := d.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(d.key), "=", revisionOf(got.Kvs))).
				Then(clientv3.OpPut(d.key, string(value))).Commit()
			if err != nil || done.Succeeded {
				return err
			}
		}
		if !state.Pause(ctx, 20*time.Millisecond+rand.N(180*time.Millisecond)) {
			return ctx.Err()
		}
	}
}

func report(b *testing.B, n int, kinds map[string]int, cpu time.Duration) {
	b.ReportMetric(float64(requests(kinds))/float64(n), "requests/node")
	b.ReportMetric(float64(kinds[renewal])/float64(n), "renewals/node")
	b.ReportMetric(cpu.Seconds(), "etcd-cpu-s")
}

func reportOver(b *testing.B, n int, took time.Duration) {
	ideal := time.Duration((n+places-1)/places) * hold
	b.ReportMetric(100*(took.Seconds()/ideal.Seconds()-1), "%over-ideal")
}

// process is an etcd of its own.
type process struct {
	*exec.Cmd
	in        io.Closer
	endpoints []string
}

// etcdDir tells the test binary to be an etcd with its data there.
const etcdDir = "PULLET_TEST_ETCD"

func startEtcd(b *testing.B) *process {
	b.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env, p.Stderr = append(os.Environ(), etcdDir+"="+b.TempDir()), os.Stderr
	in, err := p.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	p.in = in
	b.Cleanup(p.stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("the etcd says %q, %v", line, err)
	}
	p.endpoints = []string{strings.TrimSpace(line)}
	return p
}

func (p *process) stop() {
	_ = p.in.Close()
	_ = p.Wait()
}

// cpu is the time that the process had, in hundredths as Linux counts it.
func (p *process) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// beEtcd is an etcd with its usual settings, until the input ends.
func beEtcd(dir string) error {
	c := embed.NewConfig()
	c.Dir, c.LogLevel = filepath.Join(dir, "data"), "panic"
	client := url.URL{Scheme: "unix", Path: filepath.Join(dir, "client.sock:0")}
	peer := url.URL{Scheme: "unix", Path: filepath.Join(dir, "peer.sock:0")}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.Name + "=" + peer.String()
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	<-e.Server.ReadyNotify()
	fmt.Println(client.String())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
