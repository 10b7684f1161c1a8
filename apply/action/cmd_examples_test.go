package action_test

import "maps"

func init() {
	maps.Copy(examples, map[string][]example{
		"cmd.run": {
			{name: "without a guard", params: "{cmd: echo x > out}", want: "run echo x > out"},
			{name: "a list", params: "{cmd: [touch, made]}", want: "run touch made"},
			{name: "creates, to be made", params: "{cmd: touch made, creates: /made}", want: "run touch made"},
			{name: "creates, made", params: "{cmd: touch made, creates: /made}", host: []string{"f made 644"}},
			{name: "removes, there", params: "{cmd: rm x, removes: /x}", host: []string{"f x 644"}, want: "run rm x"},
			{name: "removes, gone", params: "{cmd: rm x, removes: /x}"},
			{name: "unless", params: "{cmd: touch made, unless: test -e made}", want: "run touch made"},
			{name: "unless holds", params: "{cmd: touch made, unless: test -e made}", host: []string{"f made 644"}},
			{name: "onlyif", params: "{cmd: rm x, onlyif: test -e x}", host: []string{"f x 644"}, want: "run rm x"},
			{name: "onlyif does not hold", params: "{cmd: rm x, onlyif: test -e x}"},
			{name: "no such user and a guard", params: "{cmd: 'true', user: nobody-has-this, unless: 'true'}", want: "run true", fails: `user "nobody-has-this": it is not on this host`},
			{name: "no such directory and a guard", params: "{cmd: 'true', cwd: /later, onlyif: 'true'}", want: "run true", fails: "cwd /later: it is not on this host"},
			{name: "cwd and env", params: "{cmd: 'echo $A > made', cwd: /d, env: {A: b}, creates: /d/made}", host: []string{"d d 755"}, want: "run echo $A > made"},
			{name: "fails", params: "{cmd: exit 3}", want: "run exit 3", fails: "exit code 3"},
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
