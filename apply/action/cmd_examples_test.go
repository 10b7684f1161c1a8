package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
)

func init() {
	maps.Copy(examples, map[string][]actiontest.Example{
		"cmd.run": {
			{Name: "without a guard", Params: "{cmd: echo x > out}", Want: "run echo x > out"},
			{Name: "a list", Params: "{cmd: [touch, made]}", Want: "run touch made"},
			{Name: "creates, to be made", Params: "{cmd: touch made, creates: /made}", Want: "run touch made"},
			{Name: "creates, made", Params: "{cmd: touch made, creates: /made}", Host: []string{"f made 644"}},
			{Name: "removes, there", Params: "{cmd: rm x, removes: /x}", Host: []string{"f x 644"}, Want: "run rm x"},
			{Name: "removes, gone", Params: "{cmd: rm x, removes: /x}"},
			{Name: "unless", Params: "{cmd: touch made, unless: test -e made}", Want: "run touch made"},
			{Name: "unless holds", Params: "{cmd: touch made, unless: test -e made}", Host: []string{"f made 644"}},
			{Name: "onlyif", Params: "{cmd: rm x, onlyif: test -e x}", Host: []string{"f x 644"}, Want: "run rm x"},
			{Name: "onlyif does not hold", Params: "{cmd: rm x, onlyif: test -e x}"},
			{Name: "no such user and a guard", Params: "{cmd: 'true', user: nobody-has-this, unless: 'true'}", Want: "run true", Fails: `user "nobody-has-this": it is not on this host`},
			{Name: "no such directory and a guard", Params: "{cmd: 'true', cwd: /later, onlyif: 'true'}", Want: "run true", Fails: "cwd /later: it is not on this host"},
			{Name: "onlyif that is not there", Params: "{cmd: touch made, onlyif: no-such-program --check}", Fails: "onlyif: no-such-program --check: exit code 127: "},
			{Name: "unless that is not there, in silence", Params: "{cmd: touch made, unless: no-such-program >/dev/null 2>&1}", Fails: "unless: no-such-program >/dev/null 2>&1: exit code 127; it has no answer"},
			{Name: "unless that cannot be executed", Params: "{cmd: touch made, unless: ./f}", Host: []string{"f f 644 x"}, Fails: "unless: ./f: exit code 126: "},
			{Name: "onlyif asks for a program", Params: "{cmd: touch made, onlyif: command -v no-such-program}"},
			{Name: "unless asks for a program", Params: "{cmd: touch made, unless: 'command -v no-such-program || test -e made'}", Want: "run touch made"},
			{Name: "unless is killed", Params: "{cmd: touch made, unless: 'kill -9 $$'}", Fails: "unless: kill -9 $$: it was killed and has no answer"},
			{Name: "one guard says no", Params: "{cmd: touch made, unless: no-such-program, onlyif: 'false'}"},
			{Name: "cwd and env", Params: "{cmd: 'echo $A > made', cwd: /d, env: {A: b}, creates: /d/made}", Host: []string{"d d 755"}, Want: "run echo $A > made"},
			{Name: "fails", Params: "{cmd: exit 3}", Want: "run exit 3", Fails: "exit code 3"},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"cmd.run", "{}", `jobs/a.yaml:2:3: parameters: "cmd" is missing`},
		{"cmd.run", "{cmd: ''}", "jobs/a.yaml:4:21: cmd: is empty"},
		{"cmd.run", "{cmd: []}", "jobs/a.yaml:4:21: cmd: is empty"},
		{"cmd.run", "{cmd: x, cwd: here}", `jobs/a.yaml:4:29: cwd: "here" is not an absolute path`},
		{"cmd.run", "{cmd: x, creates: here}", `jobs/a.yaml:4:33: creates: "here" is not an absolute path`},
		{"cmd.run", "{cmd: x, removes: here}", `jobs/a.yaml:4:33: removes: "here" is not an absolute path`},
		{"cmd.run", "{cmd: x, timeout: soon}", `jobs/a.yaml:4:33: "soon" is not a duration`},
		{"cmd.run", "{cmd: x, unles: y}", `jobs/a.yaml:4:24: parameters: unknown field "unles" (did you mean "unless"?)`},
	}...)
}
