package render

import (
	"bytes"
	"fmt"
	"path"
	"runtime"
	"testing"
	"testing/fstest"
	"text/template"

	"go.yaml.in/yaml/v4"
)

// manyJobs is a repository of job files with ten steps each, as people write them: variables, facts, a macro,
// requisites and conditions.
func manyJobs(jobs int) fstest.MapFS {
	m := fstest.MapFS{}
	add := func(name, text string) { m[name] = &fstest.MapFile{Data: []byte(text)} }
	base := "jobs:\n  '*':\n"
	for i := range jobs {
		base += fmt.Sprintf("  - name: app/%04d\n", i)
		text := "runOptions: {timeout: 5m}\nsteps:\n"
		for k := range 5 {
			text += fmt.Sprintf(`- name: settings %d
  action: file.managed
  parameters:
    - name: '/etc/app%d/%d.conf'
    - content: |
        host {{ server.name }} on {{ server.os }}
        port {{ add vars.port %d }} for {{ vars.site.name | upper }}
    - mode: 0644
- name: reload %d
  action: cmd.run
  parameters: {cmd: 'reload {{ macro "fleet" }} %d'}
  require: [settings %d]
  conditions: {when: {condition: "steps['settings %d'].Changed and vars.port > %d"}}
`, k, i, k, k, k, k, k, k, k)
		}
		add(fmt.Sprintf("jobs/app/%04d.yaml", i), text)
	}
	add("base/jobs.yaml", base)
	add("base/vars.yaml", "files: {'*': [{name: site}]}\n")
	add("vars/site.yaml", "port: 8000\nsite: {name: shop}\n")
	add("base/macros.yaml", "macros: {'*': [{name: site}]}\n")
	add("macros/site.yaml", "fleet: {template.expression: [{content: '{{ vars.site.name }}s'}]}\n")
	return m
}

// BenchmarkCompile is the time for one node's catalog: of a repository that is new, and of one that was parsed for a
// catalog before, as it is in a running agent. Floor is what no program over these files gets below: the same files
// through text/template and a YAML tree, with nothing looked at.
func BenchmarkCompile(b *testing.B) {
	for _, jobs := range []int{100, 1000} {
		files := manyJobs(jobs)
		b.Run(fmt.Sprintf("new/%dsteps", 10*jobs), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				benchCompile(b, Open(Layer{Name: "main", FS: files}), 10*jobs)
			}
		})
		b.Run(fmt.Sprintf("again/%dsteps", 10*jobs), func(b *testing.B) {
			r := Open(Layer{Name: "main", FS: files})
			benchCompile(b, r, 10*jobs)
			b.ReportAllocs()
			for b.Loop() {
				benchCompile(b, r, 10*jobs)
			}
		})
		b.Run(fmt.Sprintf("floor/%dsteps", 10*jobs), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				floor(b, files)
			}
		})
		b.Run(fmt.Sprintf("floorAgain/%dsteps", 10*jobs), func(b *testing.B) {
			parsed := floor(b, files)
			b.ReportAllocs()
			for b.Loop() {
				for _, t := range parsed {
					floorOf(b, t)
				}
			}
		})
	}
}

func benchCompile(b *testing.B, r *Repository, steps int) {
	cat, err := r.Compile(web1)
	if err != nil {
		b.Fatal(err)
	}
	found := 0
	for _, j := range cat.Jobs {
		found += len(j.Steps)
	}
	if found != steps {
		b.Fatalf("%d steps, want %d", found, steps)
	}
}

// floor parses, executes and reads the job files, and does nothing with them.
func floor(b *testing.B, files fstest.MapFS) []*template.Template {
	funcs := pureFuncs()
	funcs["server"] = func() any { return map[string]any{"name": "web1", "os": "debian"} }
	funcs["vars"] = func() any { return map[string]any{"port": 8000, "site": map[string]any{"name": "shop"}} }
	funcs["macro"] = func(string) string { return "shops" }
	root := template.New("").Funcs(funcs)
	var out []*template.Template
	for name, file := range files {
		if path.Dir(name) != "jobs/app" {
			continue
		}
		t, err := root.New(name).Parse(string(file.Data))
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, t)
		floorOf(b, t)
	}
	return out
}

func floorOf(b *testing.B, t *template.Template) {
	var text bytes.Buffer
	if err := t.Execute(&text, nil); err != nil {
		b.Fatal(err)
	}
	var node yaml.Node
	if err := yaml.Load(text.Bytes(), &node); err != nil {
		b.Fatal(err)
	}
}

// TestLinear: eight times as many steps make eight times as much, not sixty-four. What is made is counted, which is the
// same on any machine.
func TestLinear(t *testing.T) {
	made := func(jobs int) uint64 {
		r := Open(Layer{Name: "main", FS: manyJobs(jobs)})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 2 {
			if _, err := r.Compile(web1); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := made(50), made(400); many > 12*few {
		t.Errorf("500 steps make %d kB, 4000 steps %d kB", few>>10, many>>10)
	}
}

// TestParsedOnce: the second catalog of an unchanged repository parses no file again, whichever node it is for.
func TestParsedOnce(t *testing.T) {
	r := Open(Layer{Name: "main", FS: manyJobs(20)})
	first, err := r.Compile(web1)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]*template.Template{}
	for key, s := range r.parsed {
		before[key] = s.tmpl
	}
	other := web1
	other.Node = Node{Name: "db1"}
	second, err := r.Compile(other)
	if err != nil {
		t.Fatal(err)
	}
	for key, s := range r.parsed {
		if s.tmpl != before[key] {
			t.Errorf("%s was parsed again", key)
		}
	}
	again, err := r.Compile(web1)
	if err != nil || again.Digest != first.Digest || second.Digest == first.Digest || len(before) != len(r.parsed) {
		t.Errorf("%v: digests %s, %s, %s; %d files, then %d", err, first.Digest, second.Digest, again.Digest, len(before), len(r.parsed))
	}
}
