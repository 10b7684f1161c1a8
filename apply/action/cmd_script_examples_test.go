package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
)

func init() {
	maps.Copy(examples, map[string][]actiontest.Example{
		"cmd.script": {
			{Name: "without a guard", Params: `{script: "echo x > out\necho y >> out\n"}`, Want: "run a script of 2 lines"},
			{Name: "creates, to be made", Params: `{script: 'touch "$1"', args: [made], creates: /made}`, Want: "run a script of 1 line made"},
			{Name: "creates, made", Params: "{script: exit 1, creates: /made}", Host: []string{"f made 644"}},
			{Name: "removes", Params: "{script: rm x, removes: /x}", Host: []string{"f x 644"}, Want: "run a script of 1 line"},
			{Name: "unless", Params: "{script: touch made, unless: test -e made}", Want: "run a script of 1 line"},
			{Name: "onlyif that is not there", Params: "{script: touch made, onlyif: no-such-program --check}", Fails: "onlyif: no-such-program --check: exit code 127: "},
			{Name: "onlyif does not hold", Params: "{script: rm x, onlyif: test -e x}"},
			{Name: "cwd and env", Params: `{script: 'echo "$A" > made', cwd: /d, env: {A: b}, creates: /d/made}`, Host: []string{"d d 755"}, Want: "run a script of 1 line"},
			{Name: "interpreter", Params: `{script: '{ print > "made" }', interpreter: [/usr/bin/env, awk, -f], args: [/etc/os-release], creates: /made}`, Want: "run a script of 1 line /etc/os-release"},
			{Name: "fails", Params: "{script: exit 3}", Want: "run a script of 1 line", Fails: "a script of 1 line: exit code 3"},
			{Name: "an interpreter that is not there", Params: "{script: '#!/nowhere/sh'}", Want: "run a script of 1 line", Fails: "a script of 1 line: cannot start /nowhere/sh: "},
			{Name: "no such user", Params: "{script: id, user: nobody-has-this}", Want: "run a script of 1 line", Fails: `user "nobody-has-this"`},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"cmd.script", "{}", "jobs/a.yaml:2:3: there is nothing to run: give source, a file below files/, or script"},
		{"cmd.script", "{script: ' '}", "there is nothing to run"},
		{"cmd.script", "{script: x, source: bad}", "jobs/a.yaml:4:35: source: script and source exclude each other"},
		{"cmd.script", "{script: x, template: true}", "jobs/a.yaml:4:37: template: only a source can be a template"},
		{"cmd.script", "{source: nope}", "jobs/a.yaml:4:24: source: there is no files/nope"},
		{"cmd.script", "{source: bad, template: true}", `files/bad:2:4: vars.nope: there is no "nope"`},
		{"cmd.script", `{script: "#!/bin/sh\r\nid\r\n"}`, "jobs/a.yaml:4:24: script: its lines end as on Windows"},
		{"cmd.script", `{script: "a\0b"}`, "jobs/a.yaml:4:24: script: is a program and no script"},
		{"cmd.script", "{script: x, interpreter: ''}", "jobs/a.yaml:4:40: interpreter: is empty"},
		{"cmd.script", "{script: x, cwd: here}", `jobs/a.yaml:4:32: cwd: "here" is not an absolute path`},
		{"cmd.script", "{script: x, creates: here}", `jobs/a.yaml:4:36: creates: "here" is not an absolute path`},
	}...)
}
