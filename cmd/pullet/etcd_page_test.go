package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
)

// etcdPage is docs/etcd.md, to be run below a directory of its own with an etcd on this machine.
type etcdPage struct {
	t      *testing.T
	dir    string
	blocks []string // of the shell
	config string
	port   string // of etcd
	stop   func()
}

// TestEtcdPage runs docs/etcd.md as it is written, with the etcd, etcdctl and openssl of this machine: a host that
// follows it pulls, and one without a role, or without a certificate of the authority, is told what is missing.
func TestEtcdPage(t *testing.T) {
	t.Parallel()
	tier.Program(t, "etcd", "etcd-server")
	tier.Program(t, "etcdctl", "etcd-client")
	p := readEtcdPage(t)
	p.shell(p.block("openssl"))
	p.server(p.block("--data-dir"))
	p.shell(p.block("etcdctl user add"))
	p.host("web1", "")
	if out, err := p.pullet("pull"); err != nil {
		t.Errorf("pull: %v\n%s", err, out)
	}
	if out, err := p.pullet("doctor"); err != nil || !strings.Contains(out, "etcd") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	p.shell(p.block("snapshot save"))
	p.shell(p.block("pullet fleet roles"))
	if out, err := p.pullet("pull"); err != nil || strings.Contains(out, "warning") {
		t.Errorf("pull with roles of its own: %v\n%s", err, out)
	}
	if out, err := p.pullet("rollout", "pause"); err == nil || !strings.Contains(out, "refuses this host") {
		t.Errorf("a host paused the rollout: %v\n%s", err, out)
	}

	p.shell("cd /etc/etcd/pki && issue web2")
	p.host("web2", "")
	unknown := "refuses this host: web2 may not use the keys below /pullet/default/: etcdctl user add web2 --no-password, unless etcd has this user; " +
		"then etcdctl user grant-role web2 ROLE, with a role that may"
	p.refused(unknown)
	p.shell("etcdctl user add web2 --no-password")
	p.refused(unknown)
	p.shell("etcdctl user grant-role web2 fleet")
	if out, err := p.pullet("status"); err != nil {
		t.Errorf("with the role: %v\n%s", err, out)
	}
	p.shell("etcdctl user delete web2")
	p.refused(unknown)
	p.shell("etcdctl user add someone:secret")
	if err := os.WriteFile(filepath.Join(p.dir, "password"), []byte("guessed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.host("web2", "  username: someone\n  passwordFile: password\n")
	p.refused("refuses this host: user someone or the password is wrong (etcd.username, etcd.passwordFile)")
	p.shell("etcdctl user add reader:secret")
	if err := os.WriteFile(filepath.Join(p.dir, "password"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.host("web2", "  username: reader\n  passwordFile: password\n")
	p.refused("refuses this host: reader may not use the keys below /pullet/default/: etcdctl user grant-role reader ROLE, with a role that may")
	p.host("web2", "  username: someone\n  passwordFile: password\n")
	p.stop()
	p.refused("connection refused; try: etcdctl --endpoints https://localhost:" + p.port + " --cacert " + p.dir + "/pki/ca.pem --cert " + p.dir + "/pki/host.pem --key " +
		p.dir + "/pki/host.key --user someone endpoint health")
}

// refused runs a command that etcd does not let through, and looks for what it says.
func (p *etcdPage) refused(want string) {
	p.t.Helper()
	if out, err := p.pullet("status"); err == nil || !strings.Contains(out, want) {
		p.t.Errorf("got  %s\nwant %s", out, want)
	}
}

// readEtcdPage reads the page and puts its names and paths in the place where it is run.
func readEtcdPage(t *testing.T) *etcdPage {
	t.Helper()
	text, err := os.ReadFile("../../docs/etcd.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, port, _ := net.SplitHostPort(freeport.AddressFor(t))
	here := strings.NewReplacer(
		"0.0.0.0:2379", "127.0.0.1:"+port, "etcd1.example.org:2379", "localhost:"+port, "etcd1.example.org", "localhost",
		"/etc/etcd/pki", dir+"/authority", "/var/lib/etcd", dir+"/data", "/var/backups", dir,
	)
	p := &etcdPage{t: t, dir: dir, port: port}
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		p.blocks = append(p.blocks, here.Replace(m[1]))
	}
	p.config = here.Replace(regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(string(text))[1])
	return p
}

// block is the one with a text.
func (p *etcdPage) block(with string) string {
	p.t.Helper()
	for _, b := range p.blocks {
		if strings.Contains(b, with) {
			return b
		}
	}
	p.t.Fatalf("no block has %q", with)
	return ""
}

// shell runs a block behind those that set what it uses: functions and variables.
func (p *etcdPage) shell(block string) {
	p.t.Helper()
	block = strings.ReplaceAll(block, "/etc/etcd/pki", p.dir+"/authority")
	var before strings.Builder
	for _, b := range p.blocks {
		if b == block {
			break
		}
		before.WriteString(regexp.MustCompile(`(?ms)^issue\(\).*?^\}$`).FindString(b) + "\n")
		before.WriteString(strings.Join(regexp.MustCompile(`(?m)^export .*$`).FindAllString(b, -1), "\n") + "\n")
	}
	out, err := exec.Command("bash", "-euc", before.String()+block).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s\n%v\n%s", block, err, out)
	}
}

// server runs etcd until the test ends.
func (p *etcdPage) server(block string) {
	p.t.Helper()
	cmd := exec.Command("bash", "-euc", "exec "+block)
	log, err := os.Create(filepath.Join(p.dir, "etcd.log"))
	if err == nil {
		cmd.Stderr, err = log, cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.stop = sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = log.Close() })
	p.t.Cleanup(p.stop)
	patience.SucceedsWithin(p.t, time.Minute, "etcd answers", func() error {
		c, err := net.Dial("tcp", "127.0.0.1:"+p.port)
		if err != nil {
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%w\n%s", err, text)
		}
		return c.Close()
	})
}

// host gives a host its certificate and configuration, with more in its etcd part.
func (p *etcdPage) host(name, more string) {
	p.t.Helper()
	repo, config := filepath.Join(p.dir, "repo"), "node: {name: "+name+"}\nrepositories: [{name: main, url: "+p.dir+"/repo}]\n"+
		"paths: {state: "+name+"-state}\nagent: {wait: 0s}\n"+p.config+more
	p.shell(`mkdir -p "` + p.dir + `/pki" "` + p.dir + `/root" && cd "` + p.dir + `/authority" && cp ca.pem ../pki/ && cp ` + name + `.pem ../pki/host.pem && cp ` + name + `.key ../pki/host.key
		[ -d "` + repo + `" ] || { git init -q -b main "` + repo + `" && mkdir "` + repo + `/base" && echo "jobs: {}" > "` + repo + `/base/jobs.yaml" && git -C "` + repo + `" add -A && git -C "` + repo + `" -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m empty; }`)
	if err := os.WriteFile(filepath.Join(p.dir, "pullet.yaml"), []byte(config), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *etcdPage) pullet(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "pullet", append([]string{"--config", p.dir + "/pullet.yaml", "--root", p.dir + "/root"}, args...)...).CombinedOutput()
	return string(out), err
}
