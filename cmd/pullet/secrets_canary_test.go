package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/trust"
)

// made is a way in which a template writes a secret: a function of it, and what that gives.
type made struct {
	template string // %s is the variable
	text     func(secret string) string
}

// makings are what templates do with secrets. What they give is a secret, too.
var makings = []made{
	{`{{ %s }}`, func(s string) string { return s }},
	{`{{ %s | upper }}`, strings.ToUpper},
	{`{{ %s | b64enc }}`, func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
	{`{{ mul 2 vars.db.pin }}{{ if not (kindIs "string" (%s)) }}{{ end }}`, func(s string) string {
		pin, _ := strconv.Atoi("77" + digits(s)[:6])
		return strconv.Itoa(2 * pin)
	}},
	{`{{ printf "user:%%s" (%s) | b64enc }}`, func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s)) }},
	{`{{ %s | sha256sum }}`, func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }},
	{`{{ %s | sha256sum | upper }}`, func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return strings.ToUpper(hex.EncodeToString(sum[:]))
	}},
	{`{{ %s | replace "c" "__" }}`, func(s string) string { return strings.ReplaceAll(s, "c", "__") }},
	{`{{ substr 0 12 (%s) }}`, func(s string) string { return s[:12] }},
	{`{{ $s := %s }}{{ $s | title }}`, func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }},
	{`{{ list "a" (%s) | join "+" | b64enc }}`, func(s string) string { return base64.StdEncoding.EncodeToString([]byte("a+" + s)) }},
	{`{{ dict "k" (%s) | toJson | sha256sum }}`, func(s string) string {
		text, _ := json.Marshal(map[string]string{"k": s}) // a text can be encoded
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:])
	}},
	{`{{ macro "wrapped" (%s) | b64enc }}`, func(s string) string { return base64.StdEncoding.EncodeToString([]byte("<" + s + ">")) }},
}

// secretPlaces are steps through which a secret, written so, goes. %[1]s is its name, %[2]s what the template is.
var secretPlaces = []string{
	`{name: %[1]s, action: file.managed, parameters: {name: /etc/%[1]s, content: '%[2]s'}}`,
	`{name: %[1]s, action: file.managed, parameters: {name: /etc/%[1]s, data: {key: '%[2]s'}, format: json}}`,
	`{name: %[1]s, action: file.line, parameters: {name: /etc/lines-%[1]s, line: 'pw=%[2]s', create: true}}`,
	`{name: %[1]s, action: file.block, parameters: {name: /etc/block-%[1]s, content: 'pw=%[2]s', create: true}}`,
	`{name: %[1]s, action: cmd.run, parameters: {cmd: 'printenv SECRET', env: {SECRET: '%[2]s'}}}`,
	`{name: %[1]s, action: cmd.run, parameters: {cmd: 'printenv SECRET >&2; exit 3', env: {SECRET: '%[2]s'}}}`,
	`{name: %[1]s, action: cmd.run, runOptions: {runs: once}, parameters: {cmd: 'printenv SECRET; touch x', env: {SECRET: '%[2]s'}}}`,
	`{name: %[1]s, action: cmd.run, runOptions: {target: {limit: 1}}, parameters: {cmd: 'printenv SECRET', env: {SECRET: '%[2]s'}}}`,
	`{name: %[1]s, action: cmd.run, sensitive: true, runOptions: {target: {limit: 1}}, parameters: {cmd: 'cat etc/key'}}`,
	`{name: %[1]s, action: cmd.run, parameters: {cmd: 'cat etc/key; printenv PIN >&2', env: {PIN: '{{ vars.db.pin }}'}}}`,
	`{name: %[1]s, action: file.managed, parameters: {name: /etc/%[1]s, data: {key: '%[2]s', pin: '{{ vars.db.pin }}'}, format: yaml}}`,
	`{name: %[1]s, action: file.content, runOptions: {target: {limit: 1}}, parameters: {name: /etc/key}}`,
	`{name: %[1]s, action: cmd.script, parameters: {script: "#!/bin/sh\necho %[2]s; exit 1"}}`,
	`{name: %[1]s, action: cron.present, parameters: {name: %[1]s, command: 'true', schedule: '@daily', env: {S: '%[2]s'}}}`,
	`{name: %[1]s, action: http.request, parameters: {url: 'http://127.0.0.1:1/', headers: {Authorization: '%[2]s'}, timeout: 1s}}`,
	`{name: %[1]s, action: template.expression, parameters: {content: '%[2]s'}}`,
	`{name: %[1]s, action: test.succeed, conditions: {success: {condition: "vars.db.password == 'x'"}}}`,
	`{name: %[1]s, action: cmd.run, parameters: {cmd: 'true'}, conditions: {when: {condition: "vars.db.password != '1'"}}}`,
	`{name: '%[1]s {{ item.name }}', forEach: {{ toJson (list (dict "name" "a" "s" vars.db.password)) }}, action: file.managed, parameters: {name: /etc/%[1]s, content: '{{ item.s }} %[2]s'}}`,
}

// secretFleet is a node with a secret, and all that its pulls print, trace and leave.
type secretFleet struct {
	t       *testing.T
	dir     string
	printed bytes.Buffer
	traced  bytes.Buffer
}

func (f *secretFleet) write(name, text string) {
	f.t.Helper()
	file := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *secretFleet) exec(name string, args ...string) {
	f.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = f.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
}

// pullet runs a command of the node, whatever comes of it.
func (f *secretFleet) pullet(args ...string) int {
	return run(f.t.Context(), append(args, "--config", f.dir+"/pullet.yaml", "--root", f.dir+"/root"), &f.printed, &f.printed, nil)
}

func (f *secretFleet) commit() {
	f.t.Helper()
	f.exec("git", "-C", "repo", "add", "-A")
	f.exec("git", "-C", "repo", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "x")
}

// left are the places below a directory, and in what was printed, where one of the texts is.
func (f *secretFleet) left(secrets []string) (found []string) {
	look := func(where string, data []byte) {
		for _, secret := range secrets {
			if at := bytes.Index(data, []byte(secret)); at >= 0 {
				found = append(found, fmt.Sprintf("%s: %.200q", where, data[max(at-80, 0):min(at+len(secret)+20, len(data))]))
			}
		}
	}
	look("printed", f.printed.Bytes())
	look("traced", f.traced.Bytes())
	err := filepath.WalkDir(filepath.Join(f.dir, "state"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "/lastgood/") {
			return err
		}
		data, err := os.ReadFile(path)
		look(strings.TrimPrefix(path, f.dir), data)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return found
}

// collector is the address of one that takes the traces of pulls, and keeps them as they come.
func (f *secretFleet) collector() string {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := gzip.NewReader(r.Body)
		if err == nil {
			_, err = io.Copy(&f.traced, body)
		}
		if err != nil {
			f.t.Error(err)
		}
	}))
	f.t.Cleanup(server.Close)
	return server.URL
}

// digits are those of the random part of a secret.
func digits(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return fmt.Sprintf("%08d", uint32(sum[0])<<16|uint32(sum[1])<<8|uint32(sum[2]))
}

func newSecretFleet(t *testing.T, secret string) *secretFleet {
	f := &secretFleet{t: t, dir: t.TempDir()}
	f.exec("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "host.key")
	public, err := os.ReadFile(f.dir + "/host.key.pub")
	if err != nil {
		t.Fatal(err)
	}
	to, err := trust.ParseRecipient(string(public))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := trust.Seal(fmt.Appendf(nil, "db: {password: %q, pin: 77%.6s}\n", secret, digits(secret)), []trust.Recipient{to})
	if err != nil {
		t.Fatal(err)
	}
	f.write("repo/vars/db.yaml.age", string(sealed))
	file, err := trust.Seal([]byte("key="+secret+"\n"), []trust.Recipient{to})
	if err != nil {
		t.Fatal(err)
	}
	f.write("repo/files/key.age", string(file))
	f.write("repo/base/vars.yaml", "files: {'*': [{name: db}]}\n")
	f.write("repo/base/macros.yaml", "macros: {'*': [{name: m}]}\n")
	f.write("repo/macros/m.yaml", "wrapped: {template.expression: [{content: '<{{ .what }}>'}], params: [what]}\n")
	f.write("repo/base/jobs.yaml", "jobs: {'*': [{name: site}]}\n")
	f.write("pullet.yaml", fmt.Sprintf("node: {name: web1}\nrepositories: [{name: main, url: %s/repo}]\n"+
		"paths: {state: state, hostVars: vars.d}\nsecrets: {identities: host.key}\nagent: {traces: {endpoint: %q}}\n", f.dir, f.collector()))
	f.exec("git", "init", "-q", "-b", "main", "repo")
	if err := os.MkdirAll(f.dir+"/root/etc/cron.d", 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestNoSecretIsLeft: whatever steps and templates do with a secret, neither it nor what they made of it is in what
// pullet prints and traces, nor in any byte of its state directory: journal, reports, records, the embedded etcd. It is
// only where steps put it.
func TestNoSecretIsLeft(t *testing.T) {
	seeds := 24
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			x := rand.New(rand.NewPCG(uint64(seed), 1))
			secret := fmt.Sprintf([]string{"canary%016xc", `cana"ry<%016x>c`, "canary %016x: {c}", "canary'%016x&c"}[seed%4], x.Uint64())
			f := newSecretFleet(t, secret)
			inJSON, err := json.Marshal(secret)
			if err != nil {
				t.Fatal(err)
			}
			secrets := []string{secret, strings.Trim(string(inJSON), `"`), "77" + digits(secret)[:6]}
			steps := "  - {name: key, action: file.managed, parameters: {name: /etc/key, source: key.age}}\n" +
				"  - {name: read, action: cmd.run, parameters: {cmd: cat etc/key}}\n" +
				"  - {name: spread, action: file.managed, parameters: {name: /etc/spread, content: '{{ (step `read`).StdOut | b64enc }}'}}\n"
			secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte("key=" + secret + "\n"))[:24])
			secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte("key="+secret+"\n")))
			for i, place := range secretPlaces {
				how := makings[x.IntN(len(makings))]
				template := fmt.Sprintf(how.template, []string{"vars.db.password", "(index vars `db` `password`)"}[x.IntN(2)])
				steps += "  - " + fmt.Sprintf(place, fmt.Sprint("s", i), template) + "\n"
				secrets = append(secrets, how.text(secret))
			}
			f.write("repo/jobs/site.yaml", "steps:\n"+steps)
			f.commit()
			f.pullet("plan", "-v")
			f.pullet("pull", "-v", "-v")
			f.pullet("pull", "-o", "json")
			again := "  - {name: again, action: file.managed, parameters: {name: /etc/again, content: '{{ (step `s6`).StdOut }}'}}\n"
			f.write("repo/jobs/site.yaml", strings.ReplaceAll("steps:\n"+steps, "/etc/s", "/etc/new-s")+again)
			f.commit()
			f.pullet("pull", "-v")
			f.pullet("status", "-o", "json")
			f.pullet("history", "-o", "json")
			f.pullet("journal", "-o", "json")
			for _, found := range f.left(secrets) {
				t.Error(found)
			}
			if data, err := os.ReadFile(f.dir + "/root/etc/again"); err != nil || len(data) < 8 {
				t.Errorf("the result of a step that ran before was lost: %q, %v\n%s", data, err, f.printed.String())
			}
			if data, err := os.ReadFile(f.dir + "/root/etc/key"); err != nil || !strings.Contains(string(data), secret) {
				t.Errorf("the step did not write its file: %q, %v\n%s", data, err, f.printed.String())
			}
			if !strings.Contains(f.traced.String(), "site/key") {
				t.Error("there is no trace of the steps")
			}
			if !strings.Contains(f.printed.String(), "not shown") {
				t.Errorf("nothing was hidden:\n%s", f.printed.String())
			}
		})
	}
}
