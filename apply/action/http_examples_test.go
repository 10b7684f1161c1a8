package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
)

func init() {
	// Nobody listens on port 1: what a server answers is in http_test.go.
	maps.Copy(examples, map[string][]actiontest.Example{
		"http.request": {
			{Name: "nobody answers", Reads: true, Params: "{url: 'http://127.0.0.1:1/x?token=sesame'}", Want: "GET http://127.0.0.1:1/x", Fails: "GET http://127.0.0.1:1/x: dial tcp 127.0.0.1:1: connect: connection refused"},
			{Name: "a change that nobody takes", Params: "{url: 'http://127.0.0.1:1/x', method: POST, json: {a: 1}}", Want: "POST http://127.0.0.1:1/x", Fails: "connection refused"},
			{Name: "creates, made", Params: "{url: 'http://127.0.0.1:1/', creates: /made}", Host: []string{"f made 644"}},
			{Name: "unless holds", Params: "{url: 'http://127.0.0.1:1/', method: POST, unless: test -e made}", Host: []string{"f made 644"}},
			{Name: "onlyif that is not there", Params: "{url: 'http://127.0.0.1:1/', onlyif: no-such-program --check}", Fails: "onlyif: no-such-program --check: exit code 127: "},
			{Name: "onlyif does not hold", Params: "{url: 'http://127.0.0.1:1/', onlyif: test -e made}"},
			{Name: "open secrets", Reads: true, Params: "{url: 'http://127.0.0.1:1/', headersFile: /h}", Host: []string{"f h 644 A: sesame"}, Want: "GET http://127.0.0.1:1/", Fails: "headersFile: the secret in /h is open to others (mode 0644): chmod 600 /h"},
			{Name: "no secrets", Reads: true, Params: "{url: 'http://127.0.0.1:1/', headersFile: /h}", Want: "GET http://127.0.0.1:1/", Fails: "headersFile: cannot read a secret: "},
			{Name: "no header", Reads: true, Params: "{url: 'http://127.0.0.1:1/', headersFile: /h}", Host: []string{"f h 600 # ours\n\nsesame\n"}, Want: "GET http://127.0.0.1:1/", Fails: "headersFile: /h: line 3 is no header: write Name: value"},
			{Name: "no authority", Reads: true, Params: "{url: 'https://127.0.0.1:1/', ca: /ca}", Host: []string{"f ca 644 sesame"}, Want: "GET https://127.0.0.1:1/", Fails: "ca: /ca holds no certificate"},
			{Name: "no certificate", Reads: true, Params: "{url: 'https://127.0.0.1:1/', cert: /c, key: /k}", Host: []string{"f c 644 x", "f k 600 sesame"}, Want: "GET https://127.0.0.1:1/", Fails: "cert and key: tls: failed to find any PEM data in certificate input"},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"http.request", "{}", `jobs/a.yaml:2:3: parameters: "url" is missing`},
		{"http.request", "{url: example.org}", `jobs/a.yaml:4:21: url: "example.org" is no address of a web server: write https://HOST/PATH`},
		{"http.request", "{url: 'ftp://example.org/'}", `url: "ftp://example.org/" is no address of a web server`},
		{"http.request", "{url: 'https://u:sesame@example.org/'}", "url: holds a user or password: put an Authorization header into headersFile"},
		{"http.request", "{url: 'https://[x'}", "url: cannot be parsed"},
		{"http.request", "{url: 'http://h/', method: FETCH}", `method: expected GET or HEAD or POST or PUT or PATCH or DELETE or OPTIONS, found "FETCH"`},
		{"http.request", "{url: 'http://h/', status: [200, fine]}", `jobs/a.yaml:4:42: status: "fine" is no status: write a number such as 204, or a class such as 2xx`},
		{"http.request", "{url: 'http://h/', headers: {'a b': c}}", `headers: "a b" is no name of a header`},
		{"http.request", `{url: 'http://h/', headers: {a: "b\nc"}}`, "headers: the value of a has more than one line"},
		{"http.request", "{url: 'http://h/', headersFile: /h}", `url: is http, and the secrets of headersFile could be read on the way: use https`},
		{"http.request", "{url: 'https://h/', headersFile: h}", `headersFile: "h" is not an absolute path`},
		{"http.request", "{url: 'http://h/', ca: h}", `ca: "h" is not an absolute path`},
		{"http.request", "{url: 'http://h/', cert: /c}", "cert: cert and key belong together: give both"},
		{"http.request", "{url: 'http://h/', body: a, json: {b: c}}", "json: body and json exclude each other: keep one"},
		{"http.request", "{url: 'http://h/', redirects: -1}", "redirects: is less than 0"},
		{"http.request", "{url: 'http://h/', timeout: 0}", "timeout: must be more than 0"},
		{"http.request", "{url: 'http://h/', creates: h}", `creates: "h" is not an absolute path`},
	}...)
}
