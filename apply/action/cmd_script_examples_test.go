package action_test

import "maps"

func init() {
	maps.Copy(examples, map[string][]example{
		"cmd.script": {
			{name: "without a guard", params: `{script: "echo x > out\necho y >> out\n"}`, want: "run a script of 2 lines"},
			{name: "creates, to be made", params: `{script: 'touch "$1"', args: [made], creates: /made}`, want: "run a script of 1 line made"},
			{name: "creates, made", params: "{script: exit 1, creates: /made}", host: []string{"f made 644"}},
			{name: "removes", params: "{script: rm x, removes: /x}", host: []string{"f x 644"}, want: "run a script of 1 line"},
			{name: "unless", params: "{script: touch made, unless: test -e made}", want: "run a script of 1 line"},
			{name: "onlyif does not hold", params: "{script: rm x, onlyif: test -e x}"},
			{name: "cwd and env", params: `{script: 'echo "$A" > made', cwd: /d, env: {A: b}, creates: /d/made}`, host: []string{"d d 755"}, want: "run a script of 1 line"},
			{name: "interpreter", params: `{script: '{ print > "made" }', interpreter: [/usr/bin/env, awk, -f], args: [/etc/os-release], creates: /made}`, want: "run a script of 1 line /etc/os-release"},
			{name: "fails", params: "{script: exit 3}", want: "run a script of 1 line", fails: "a script of 1 line: exit code 3"},
			{name: "an interpreter that is not there", params: "{script: '#!/nowhere/sh'}", want: "run a script of 1 line", fails: "a script of 1 line: cannot start /nowhere/sh: "},
			{name: "no such user", params: "{script: id, user: nobody-has-this}", want: "run a script of 1 line", fails: `user "nobody-has-this"`},
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
	slow["cmd.script"] = "{script: 'sleep 60 & (sleep 60; true) & echo $$ > started; wait'}"
}
