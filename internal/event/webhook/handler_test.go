package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/state"
)

const (
	token  = "0123456789abcdef"
	before = "95790bf891e76fee5e1747ab589903a6a1f80f22"
	after  = "da1560886d4f094c3e6c9ef40349f7d38b5d27d7"
	none   = "0000000000000000000000000000000000000000"
)

// standardKey is the secret of Standard Webhooks.
var standardKey = signing + base64.StdEncoding.EncodeToString([]byte("a key of twenty four by."))

// site is a host with a hook of each type.
type site struct {
	*Handler
	secrets map[string]string
	events  []state.Event
	pushes  []Push
	fails   error
	at      time.Time
	log     strings.Builder
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{at: time.Unix(1_790_000_000, 0), secrets: map[string]string{"token": token + "\n", "secret": token, "both": "another secret of it\n" + token, "standard": standardKey}}
	log := logrus.New()
	log.SetOutput(&s.log)
	hooks := []Hook{
		{Name: "alerts", Type: "alertmanager", TokenFile: "token"},
		{Name: "routed", Type: "alertmanager", TokenFile: "token", RouteLabels: []string{"node", "instance"}},
		{Name: "github", Type: "github", SecretFile: "both", Repository: "main"},
		{Name: "gitlab", Type: "gitlab", SecretFile: "secret", Repository: "main"},
		{Name: "signed", Type: "gitlab", SecretFile: "standard", Repository: "main"},
		{Name: "gitea", Type: "gitea", SecretFile: "secret", Repository: "main"},
		{Name: "forgejo", Type: "forgejo", SecretFile: "secret", Repository: "main"},
		{Name: "ci", Type: "hmac", SecretFile: "secret", Header: "X-Built", Event: "ci/built"},
		{Name: "git", Type: "hmac", SecretFile: "secret", Repository: "main"},
		{Name: "door", Type: "json", TokenFile: "token", Event: "door/opened", RouteLabels: []string{"host"}},
	}
	if err := Check(hooks, []string{"main"}); err != nil {
		t.Fatal(err)
	}
	var err error
	s.Handler, err = New(hooks, Outside{
		Secret: func(file string) ([]byte, error) {
			text, ok := s.secrets[file]
			if !ok {
				return nil, errors.New("there is no " + file)
			}
			return []byte(text), nil
		},
		Deliver: func(_ context.Context, events []state.Event) error {
			s.events = append(s.events, events...)
			return s.fails
		},
		Pushed: func(_ context.Context, push Push) error { s.pushes = append(s.pushes, push); return s.fails },
		Log:    log.WithField("node", "web1"),
		now:    func() time.Time { return s.at },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// send posts a body to a hook. Headers are "Name: value".
func (s *site) send(hook, body string, headers ...string) *httptest.ResponseRecorder {
	return s.request(http.MethodPost, Path+hook, strings.NewReader(body), headers...)
}

func (s *site) request(method, path string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// signs is the signature of a body with the secret that all share.
func signs(body string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// standard are the headers of a body that is signed as in Standard Webhooks.
func standard(id string, at time.Time, body string) []string {
	mac := hmac.New(sha256.New, []byte("a key of twenty four by."))
	fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
	return []string{"webhook-id: " + id, fmt.Sprintf("webhook-timestamp: %d", at.Unix()), "webhook-signature: v1,AAAA v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))}
}

const bearer = "Authorization: Bearer " + token

// The bodies of forges, as they document them, without the fields that say the same again.
const (
	githubPush = `{"ref":"refs/heads/main","before":"` + before + `","after":"` + after + `","repository":{"id":17,"name":"state","full_name":"ops/state","clone_url":"https://github.com/ops/state.git","default_branch":"main","pushed_at":1790000000},
		"pusher":{"name":"ada","email":"ada@example.org"},"sender":{"login":"ada","id":5},"created":false,"deleted":false,"forced":false,"base_ref":null,"compare":"https://github.com/ops/state/compare/a...b",
		"commits":[{"id":"` + after + `","tree_id":"f9d2a07e9488b91af2641b26b9407fe22a451433","distinct":true,"message":"m","timestamp":"2026-11-26T10:00:00Z","author":{"name":"Ada","email":"ada@example.org"},"added":[],"removed":[],"modified":["vars/a.yaml"]}],
		"head_commit":{"id":"` + after + `","message":"m"}}`
	githubTag    = `{"ref":"refs/tags/v1.2.0","before":"` + none + `","after":"` + before + `","created":true,"deleted":false,"base_ref":"refs/heads/main","commits":[],"head_commit":{"id":"` + after + `"}}`
	githubGone   = `{"ref":"refs/heads/old","before":"` + before + `","after":"` + none + `","created":false,"deleted":true,"commits":[],"head_commit":null}`
	gitlabPush   = `{"object_kind":"push","event_name":"push","before":"` + before + `","after":"` + after + `","ref":"refs/heads/main","ref_protected":true,"checkout_sha":"` + after + `","user_id":4,"user_username":"ada","project_id":15,"project":{"id":15,"name":"State","path_with_namespace":"ops/state","git_http_url":"https://gitlab.example.org/ops/state.git","default_branch":"main"},"commits":[{"id":"` + after + `","message":"m","timestamp":"2026-11-26T10:00:00+01:00","added":[],"modified":["a"],"removed":[]}],"total_commits_count":1}`
	gitlabTag    = `{"object_kind":"tag_push","event_name":"tag_push","before":"` + none + `","after":"` + before + `","ref":"refs/tags/v1.0.0","checkout_sha":"` + after + `","project_id":1,"commits":[],"total_commits_count":0}`
	gitlabGone   = `{"object_kind":"push","before":"` + before + `","after":"` + none + `","ref":"refs/heads/old","checkout_sha":null,"commits":[]}`
	gitlabMerge  = `{"object_kind":"merge_request","user":{"name":"Ada"},"object_attributes":{"id":99,"target_branch":"main","state":"opened"}}`
	giteaPush    = `{"ref":"refs/heads/main","before":"` + before + `","after":"` + after + `","compare_url":"https://git.example.org/ops/state/compare/a...b","commits":[{"id":"` + after + `","message":"m","url":"https://git.example.org/ops/state/commit/d","author":{"name":"Ada","email":"ada@example.org","username":"ada"},"timestamp":"2026-11-26T10:00:00Z"}],"total_commits":1,"head_commit":{"id":"` + after + `"},"repository":{"id":140,"full_name":"ops/state","clone_url":"https://git.example.org/ops/state.git"},"pusher":{"id":1,"login":"ada"},"sender":{"id":1,"login":"ada"}}`
	alertmanager = `{"receiver":"pullet","status":"firing","alerts":[
		{"status":"firing","labels":{"alertname":"DiskFull","instance":"web1:9100","severity":"page"},"annotations":{"summary":"the disk is full"},"startsAt":"2026-11-26T10:00:00.123Z","endsAt":"0001-01-01T00:00:00Z","generatorURL":"http://prom.example.org/graph?g0.expr=x","fingerprint":"c8b1f2e5a3d49c07"},
		{"status":"resolved","labels":{"alertname":"Up/Down \u001b","instance":"[2001:db8::7]:9100","node":"web2"},"annotations":{},"startsAt":"2026-11-26T09:00:00Z","endsAt":"2026-11-26T09:30:00Z","generatorURL":"","fingerprint":"0d5f3c1b7a9e2846"}],
		"groupLabels":{"job":"node"},"commonLabels":{"job":"node"},"commonAnnotations":{},"externalURL":"http://am.example.org","version":"4","groupKey":"{}:{job=\"node\"}","truncatedAlerts":0,"routeLabels":{"team":"ops"},"notification_reason":"first"}`
)

var (
	main1 = Push{"main", "refs/heads/main", after}
	tag1  = Push{"main", "refs/tags/v1.2.0", after}
)

// TestForges: what each forge sends for a branch, a tag and other things, and whose signature it is.
func TestForges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook, body string
		headers    []string
		status     int
		push       *Push
	}{
		"github":                   {"github", githubPush, []string{"X-GitHub-Event: push", "X-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958", "X-Hub-Signature: sha1=0", "X-Hub-Signature-256: sha256=" + signs(githubPush)}, 204, &main1},
		"github, a tag":            {"github", githubTag, []string{"X-GitHub-Event: push", "X-Hub-Signature-256: sha256=" + signs(githubTag)}, 204, &tag1},
		"github, a branch is gone": {"github", githubGone, []string{"X-GitHub-Event: push", "X-Hub-Signature-256: sha256=" + signs(githubGone)}, 202, nil},
		"github, a ping":           {"github", `{"zen":"x","hook_id":1}`, []string{"X-GitHub-Event: ping", "X-Hub-Signature-256: sha256=" + signs(`{"zen":"x","hook_id":1}`)}, 204, nil},
		"github, a star":           {"github", `{}`, []string{"X-GitHub-Event: star", "X-Hub-Signature-256: sha256=" + signs(`{}`)}, 202, nil},
		"github, a note":           {"github", `{"ref":"refs/notes/x","after":"` + after + `"}`, []string{"X-GitHub-Event: push", "X-Hub-Signature-256: sha256=" + signs(`{"ref":"refs/notes/x","after":"`+after+`"}`)}, 202, nil},
		"github, by SHA-1 alone":   {"github", githubPush, []string{"X-GitHub-Event: push", "X-Hub-Signature: sha1=" + signs(githubPush)[:40]}, 401, nil},
		"github, of another body":  {"github", githubPush + " ", []string{"X-GitHub-Event: push", "X-Hub-Signature-256: sha256=" + signs(githubPush)}, 401, nil},
		"github, cut off":          {"github", githubPush, []string{"X-GitHub-Event: push", "X-Hub-Signature-256: sha256=" + signs(githubPush)[:62]}, 401, nil},
		"github, with its token":   {"github", githubPush, []string{"X-GitHub-Event: push", bearer, "X-Gitlab-Token: " + token}, 401, nil},
		"gitlab":                   {"gitlab", gitlabPush, []string{"X-Gitlab-Event: Push Hook", "X-Gitlab-Token: " + token, "Idempotency-Key: f5e5f430"}, 204, &main1},
		"gitlab, a system hook":    {"gitlab", gitlabPush, []string{"X-Gitlab-Event: System Hook", "X-Gitlab-Token: " + token}, 204, &main1},
		"gitlab, a tag":            {"gitlab", gitlabTag, []string{"X-Gitlab-Event: Tag Push Hook", "X-Gitlab-Token: " + token}, 204, &Push{"main", "refs/tags/v1.0.0", after}},
		"gitlab, a branch is gone": {"gitlab", gitlabGone, []string{"X-Gitlab-Event: Push Hook", "X-Gitlab-Token: " + token}, 202, nil},
		"gitlab, a merge request":  {"gitlab", gitlabMerge, []string{"X-Gitlab-Event: Merge Request Hook", "X-Gitlab-Token: " + token}, 202, nil},
		"gitlab, another token":    {"gitlab", gitlabPush, []string{"X-Gitlab-Event: Push Hook", "X-Gitlab-Token: " + token + "0"}, 401, nil},
		"gitlab, no token":         {"gitlab", gitlabPush, []string{"X-Gitlab-Event: Push Hook"}, 401, nil},
		"signed":                   {"signed", gitlabPush, standard("msg_1", time.Unix(1_790_000_100, 0), gitlabPush), 204, &main1},
		"signed, for another id":   {"signed", gitlabPush, append(standard("msg_1", time.Unix(1_790_000_100, 0), gitlabPush), "webhook-id: msg_2"), 401, nil},
		"signed, of yesterday":     {"signed", gitlabPush, standard("msg_1", time.Unix(1_789_900_000, 0), gitlabPush), 409, nil},
		"signed, with the key":     {"signed", gitlabPush, []string{"X-Gitlab-Token: " + standardKey}, 401, nil},
		"gitea":                    {"gitea", giteaPush, []string{"X-Gitea-Event: push", "X-GitHub-Event: push", "X-Gitea-Delivery: 1", "X-Gitea-Signature: " + signs(giteaPush)}, 204, &main1},
		"gitea, empty":             {"gitea", giteaPush, []string{"X-Gitea-Event: push", "X-Gitea-Signature: "}, 401, nil},
		"gitea, another header":    {"gitea", giteaPush, []string{"X-Gitea-Event: push", "X-Hub-Signature-256: sha256=" + signs(giteaPush)}, 401, nil},
		"forgejo":                  {"forgejo", giteaPush, []string{"X-Forgejo-Event: push", "X-Gitea-Event: push", "X-Forgejo-Delivery: 1", "X-Forgejo-Signature: " + signs(giteaPush), "X-Gitea-Signature: "}, 204, &main1},
		"forgejo, an older server": {"forgejo", giteaPush, []string{"X-Gitea-Event: push", "X-Gitea-Signature: " + signs(giteaPush)}, 204, &main1},
		"forgejo, its own counts":  {"forgejo", giteaPush, []string{"X-Forgejo-Event: push", "X-Forgejo-Signature: ", "X-Gitea-Signature: " + signs(giteaPush)}, 401, nil},
		"a branch of it is gone":   {"git", `{"ref":"refs/heads/main","commit":"` + none + `"}`, []string{"X-Signature: " + signs(`{"ref":"refs/heads/main","commit":"`+none+`"}`)}, 202, nil},
		"a server of one's own":    {"git", `{"ref":"refs/heads/main","commit":"` + after + `"}`, []string{"X-Signature: sha256=" + signs(`{"ref":"refs/heads/main","commit":"`+after+`"}`)}, 204, &main1},
	} {
		s := newSite(t)
		w := s.send(c.hook, c.body, c.headers...)
		if w.Code != c.status || c.push == nil != (len(s.pushes) == 0) || c.push != nil && s.pushes[0] != *c.push || len(s.events) > 0 {
			t.Errorf("%s: %d %q %+v", name, w.Code, w.Body, s.pushes)
		}
		if c.status == 401 && w.Body.Len() > 0 {
			t.Errorf("%s: %q", name, w.Body)
		}
	}
}

// TestAlerts: a notification is an event for each of its alerts, with the hosts that its labels name.
func TestAlerts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if w := s.send("alerts", alertmanager, bearer); w.Code != 204 || len(s.events) != 2 {
		t.Fatalf("%d %q %+v", w.Code, w.Body, s.events)
	}
	want := state.Event{
		Name: "prometheus/alert/DiskFull", Hosts: []string{"web1"}, Dedupe: "c8b1f2e5a3d49c07 2026-11-26T10:00:00.123Z firing",
		Data: map[string]any{
			"status": "firing", "labels": map[string]any{"alertname": "DiskFull", "instance": "web1:9100", "severity": "page"}, "annotations": map[string]any{"summary": "the disk is full"},
			"startsAt": "2026-11-26T10:00:00.123Z", "endsAt": "0001-01-01T00:00:00Z", "generatorURL": "http://prom.example.org/graph?g0.expr=x", "fingerprint": "c8b1f2e5a3d49c07",
			"receiver": "pullet", "groupKey": `{}:{job="node"}`,
		},
	}
	if !reflect.DeepEqual(s.events[0], want) {
		t.Errorf("%+v\nwant %+v", s.events[0], want)
	}
	if e := s.events[1]; e.Name != "prometheus/alert/Up_Down _/resolved" || !reflect.DeepEqual(e.Hosts, []string{"2001:db8::7"}) || e.Dedupe != "0d5f3c1b7a9e2846 2026-11-26T09:00:00Z resolved" {
		t.Errorf("%+v", e)
	}
	again := s.events[0].Dedupe
	if w := s.send("routed", alertmanager, "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("am:"+token))); w.Code != 204 || len(s.events) != 4 {
		t.Fatalf("%d %q", w.Code, w.Body)
	}
	if e := s.events[3]; !reflect.DeepEqual(e.Hosts, []string{"web2", "2001:db8::7"}) || s.events[2].Dedupe != again {
		t.Errorf("%+v", e)
	}
}

// TestStrangeAlerts: an alert without what names it, or with more than an event may have.
func TestStrangeAlerts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	group := func(alerts string) string { return `{"version":"4","alerts":[` + alerts + `]}` }
	plain := `{"status":"firing","labels":{"alertname":"A"}}`
	long := `{"status":"firing","labels":{"alertname":"A"},"fingerprint":"` + strings.Repeat("f", 1000) + `","annotations":{"summary":"` + strings.Repeat("s", 20_000) + `"}}`
	most := `{"status":"firing","labels":{"alertname":"A"},"annotations":{"a":"b"` + strings.Repeat(`,"a`+strings.Repeat("x", 200)+`":"b"`, 1) + `,"` + strings.Repeat("k", 17_000) + `":"v"}}`
	if w := s.send("alerts", group(plain+","+long+","+most), bearer); w.Code != 204 || len(s.events) != 3 {
		t.Fatalf("%d %q", w.Code, w.Body)
	}
	if s.events[0].Dedupe == s.events[1].Dedupe || len(s.events[0].Dedupe) != 64 || len(s.events[1].Dedupe) != 64 || s.events[0].Hosts != nil {
		t.Errorf("%+v", s.events)
	}
	if a := s.events[1].Data["annotations"].(map[string]any); len(a["summary"].(string)) != 1000 {
		t.Errorf("%v", a)
	}
	if a := s.events[2].Data["annotations"].(map[string]any); len(a) != 0 {
		t.Errorf("%v", a)
	}
	for body, want := range map[string]string{
		group(`{"status":"silent"}`): `an alert has the status "silent", which is neither firing nor resolved`,
		`{"version":"3"}`:            `it is no notification of Alertmanager in version 4: its version is "3"`,
		group(`{"status":"firing","labels":{"a":"` + strings.Repeat("x", 17_000) + `"}}`): "of 16384 at most",
		group(strings.TrimSuffix(strings.Repeat(plain+",", 1001), ",")):                   "it has 1001 alerts, of 1000 at most: set max_alerts",
		group(`{"status":"firing","labels":["a"]}`):                                       "the body is not as expected: json: cannot unmarshal array",
	} {
		if w := s.send("alerts", body, bearer); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %q, want %s", w.Code, w.Body, want)
		}
	}
	if w := s.send("alerts", group(""), bearer); w.Code != 202 || len(s.events) != 3 {
		t.Errorf("%d %d", w.Code, len(s.events))
	}
}

// TestData: the body of a generic hook is the data of its event.
func TestData(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if w := s.send("door", `{"host":["https://web1.example.org:8443/x","10.0.0.7","a b",7],"n":1}`, bearer); w.Code != 204 {
		t.Fatalf("%d %q", w.Code, w.Body)
	}
	want := state.Event{Name: "door/opened", Hosts: []string{"web1.example.org", "10.0.0.7"}, Data: map[string]any{"host": []any{"https://web1.example.org:8443/x", "10.0.0.7", "a b", 7.0}, "n": 1.0}}
	if !reflect.DeepEqual(s.events[0], want) {
		t.Errorf("%+v", s.events[0])
	}
	if w := s.send("ci", `{"job":7}`, "X-Built: "+signs(`{"job":7}`)); w.Code != 204 || s.events[1].Name != "ci/built" || len(s.events[1].Dedupe) != 67 || s.events[1].Data["job"] != 7.0 {
		t.Errorf("%d %+v", w.Code, s.events)
	}
	for body, want := range map[string]string{
		"null": "the body is no object of JSON", "[1]": "the body is not as expected", "": "unexpected end of JSON input", `{"a":`: "the body is no JSON", "payload=%7B%7D": "have the sender use the content type application/json",
		"{} {}": "the body is not as expected", `{"a":` + strings.Repeat("[", 10) + strings.Repeat("]", 10) + "}": "deeper than 10 levels", strings.Repeat("[", 1<<19) + strings.Repeat("]", 1<<19): "deeper than 10 levels",
		`{"a":"` + strings.Repeat("x", 17_000) + `"}`: "its data has 17008 bytes, of 16384 at most",
	} {
		if w := s.send("door", body, bearer); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%.20q: %d %q, want %s", body, w.Code, w.Body, want)
		}
	}
	if len(s.events) != 2 {
		t.Errorf("%+v", s.events)
	}
}

// bodyless is a body that may not be read.
type bodyless struct{ *testing.T }

func (b bodyless) Read([]byte) (int, error) {
	b.Error("the body was read")
	return 0, io.EOF
}

// TestRefused: what is refused is counted, and nothing else happens. A sender with a wrong token is not read.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	unread := bodyless{t}
	for _, c := range []struct {
		what, method, path string
		body               io.Reader
		headers            []string
		status             int
	}{
		{"secret", "POST", "/hooks/alerts", unread, []string{"Authorization: Bearer " + token + "x"}, 401},
		{"secret", "POST", "/hooks/alerts", unread, []string{"Authorization: Bearer"}, 401},
		{"secret", "POST", "/hooks/alerts", unread, []string{"Authorization: Digest " + token}, 401},
		{"secret", "POST", "/hooks/alerts", unread, []string{"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(token+":"))}, 401},
		{"secret", "POST", "/hooks/alerts", unread, nil, 401},
		{"secret", "POST", "/hooks/github", unread, []string{"X-GitHub-Event: push"}, 401},
		{"secret", "POST", "/hooks/github", unread, []string{"X-Hub-Signature-256: sha256=zz"}, 401},
		{"secret", "POST", "/hooks/signed", unread, []string{"webhook-id: 1", "webhook-signature: v1,AA==", "webhook-timestamp: x"}, 401},
		{"secret", "POST", "/hooks/signed", unread, []string{"webhook-id: 1", "webhook-signature: " + strings.Repeat("v1,AA== ", 11), "webhook-timestamp: 1790000000"}, 401},
		{"secret", "POST", "/hooks/ci", strings.NewReader("{}"), []string{"X-Built: " + strings.Repeat("00", 32)}, 401},
		{"method", "GET", "/hooks/alerts", unread, []string{bearer}, 405},
		{"size", "POST", "/hooks/alerts", strings.NewReader(strings.Repeat(" ", maxBody+1)), []string{bearer}, 413},
		{"size", "POST", "/hooks/alerts", io.MultiReader(strings.NewReader(strings.Repeat(" ", maxBody+1))), []string{bearer}, 413},
		{"size", "POST", "/hooks/ci", io.MultiReader(strings.NewReader(strings.Repeat(" ", maxBody+1))), []string{"X-Built: " + strings.Repeat("00", 32)}, 413},
		{"unusable", "POST", "/hooks/alerts", strings.NewReader("x"), []string{bearer}, 400},
		{"unusable", "POST", "/hooks/github", strings.NewReader("x"), []string{"X-Hub-Signature-256: " + signs("x")}, 400},
		{"unusable", "POST", "/hooks/git", strings.NewReader("{}"), []string{"X-Signature: " + signs("{}")}, 400},
		{"unusable", "POST", "/hooks/git", strings.NewReader(`{"ref":"a","commit":"main"}`), []string{"X-Signature: " + signs(`{"ref":"a","commit":"main"}`)}, 400},
		{"unusable", "POST", "/hooks/git", strings.NewReader(`{"ref":"refs/heads/a\n","commit":"` + after + `"}`), []string{"X-Signature: " + signs(`{"ref":"refs/heads/a\n","commit":"`+after+`"}`)}, 400},
		{"unknown", "POST", "/hooks/", unread, []string{bearer}, 404},
		{"unknown", "POST", "/hooks/alerts/", unread, []string{bearer}, 404},
		{"unknown", "GET", "/", unread, nil, 404},
		{"unknown", "POST", "/hooks/../alerts", unread, []string{bearer}, 404},
	} {
		hook := strings.TrimPrefix(c.path, Path)
		if c.what == "unknown" {
			hook = ""
		}
		n := s.Counts()[hook][c.what]
		w := s.request(c.method, c.path, c.body, c.headers...)
		if w.Code != c.status || s.Counts()[hook][c.what] != n+1 || c.status != 400 && w.Body.Len() > 0 || len(s.events)+len(s.pushes) > 0 {
			t.Errorf("%s %s %q: %d %q %v", c.method, c.path, c.headers, w.Code, w.Body, s.Counts()[hook])
		}
	}
	if n := strings.Count(s.log.String(), "hook=alerts node=web1 result=secret"); n != 1 { // once a minute
		t.Errorf("%d lines of\n%s", n, &s.log)
	}
	s.at = s.at.Add(time.Minute)
	if s.send("alerts", "{}"); !strings.Contains(s.log.String(), `count=6 hook=alerts node=web1 result=secret`) {
		t.Errorf("%s", &s.log)
	}
}

// TestFailures: when the fleet cannot be told, the sender is told to try again, and the same delivery counts then.
func TestFailures(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	headers := []string{"X-GitHub-Event: push", "X-GitHub-Delivery: 1", "X-Hub-Signature-256: sha256=" + signs(githubPush)}
	s.fails = errors.New("etcd is away")
	if w := s.send("github", githubPush, headers...); w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "etcd") || !strings.Contains(s.log.String(), "etcd is away") {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if w := s.send("alerts", alertmanager, bearer); w.Code != 503 {
		t.Errorf("%d", w.Code)
	}
	s.fails = nil
	if w := s.send("github", githubPush, headers...); w.Code != 204 || s.Counts()["github"]["failed"] != 1 || s.Counts()["github"]["accepted"] != 1 {
		t.Errorf("%d %v", w.Code, s.Counts())
	}
	delete(s.secrets, "token")
	if w := s.send("alerts", alertmanager, bearer); w.Code != 503 || w.Body.Len() > 0 || s.Counts()["alerts"]["failed"] != 2 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	s.secrets["token"] = "the next token of all"
	if old, next := s.send("alerts", alertmanager, bearer), s.send("alerts", alertmanager, "Authorization: bearer the next token of all"); old.Code != 401 || next.Code != 204 {
		t.Errorf("%d %d", old.Code, next.Code)
	}
}

// TestReplays: a delivery counts once within a day, whether it comes again with its id, with its signature under
// another id, or as another body under its id.
func TestReplays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	push := func(body, id string) int {
		return s.send("github", body, "X-GitHub-Event: push", "X-GitHub-Delivery: "+id, "X-Hub-Signature-256: sha256="+signs(body)).Code
	}
	if got := []int{push(githubPush, "1"), push(githubPush, "1"), push(githubPush, "2"), push(githubTag, "1"), push(githubTag, "3")}; !reflect.DeepEqual(got, []int{204, 409, 409, 409, 204}) {
		t.Errorf("%v", got)
	}
	lab := func() int {
		return s.send("gitlab", gitlabPush, "X-Gitlab-Token: "+token, "Idempotency-Key: 1").Code
	}
	standards := standard("msg_1", s.at, gitlabPush)
	if got := []int{lab(), lab(), s.send("signed", gitlabPush, standards...).Code, s.send("signed", gitlabPush, standards...).Code}; !reflect.DeepEqual(got, []int{204, 409, 204, 409}) {
		t.Errorf("%v", got)
	}
	if n := s.Counts(); n["github"]["replay"] != 3 || n["gitlab"]["replay"] != 1 || n["signed"]["replay"] != 1 || len(s.pushes) != 4 {
		t.Errorf("%v %d", n, len(s.pushes))
	}
	s.at = s.at.Add(rememberFor)
	if got := []int{push(githubPush, "1"), s.send("signed", gitlabPush, standards...).Code}; !reflect.DeepEqual(got, []int{204, 409}) { // the time is signed
		t.Errorf("%v", got)
	}
}

// TestMemory: what is remembered is bounded, also when every delivery fails.
func TestMemory(t *testing.T) {
	t.Parallel()
	m := &memory{}
	now := time.Now()
	for i := range maxMemory + 10 {
		ids := []string{fmt.Sprint("a", i)}
		if !m.take(ids, now) {
			t.Fatal(i)
		}
		if i%2 == 0 {
			m.forget(ids)
		}
	}
	if len(m.order) > maxMemory || len(m.seen) > maxMemory/2 {
		t.Errorf("%d %d", len(m.order), len(m.seen))
	}
	if m.take([]string{"a9", fmt.Sprint("a", maxMemory+9)}, now) || !m.take([]string{"a9"}, now) || !m.take([]string{"a12"}, now) || m.take([]string{"a12"}, now) {
		t.Error("the newest ones are not those that are remembered")
	}
}

// TestRate: a hook takes so many at once, others are not its business, and whoever has no secret uses up nothing.
func TestRate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 2 * burst {
		s.send("door", "{}", "Authorization: Bearer x")
		s.send("ci", "{}", "X-Built: "+strings.Repeat("00", 32))
	}
	for range burst + 5 {
		s.send("door", "{}", bearer)
	}
	if n := s.Counts()["door"]; n["accepted"] != burst || n["rate"] != 5 || n["secret"] != 2*burst || len(s.events) != burst {
		t.Errorf("%v", n)
	}
	if w := s.send("door", "{}", bearer); w.Code != 429 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d", w.Code)
	}
	if w := s.send("ci", "{}", "X-Built: "+signs("{}")); w.Code != 204 {
		t.Errorf("%d", w.Code)
	}
	s.at = s.at.Add(time.Second)
	for range burst {
		s.send("door", "{}", bearer)
	}
	if n := s.Counts()["door"]; n["accepted"] != burst+perSecond {
		t.Errorf("%v", n)
	}
}

// TestCheck: what is wrong with hooks is said before anything is sent to them.
func TestCheck(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]Hook{
		`webhook "": name: use letters`: {},
		`webhook a: type: there is no "slack": use alertmanager, forgejo, gitea, github, gitlab, hmac, json`: {Name: "a", Type: "slack", TokenFile: "x"},
		"tokenFile is missing: it holds the token that the sender of alertmanager shows":                     {Name: "a", Type: "alertmanager"},
		"tokenFile is missing: it holds the token that the sender of json shows":                             {Name: "a", Type: "json", SecretFile: "x", Event: "a"},
		"secretFile is missing: it holds the secret of the sender of github":                                 {Name: "a", Type: "github", Repository: "main"},
		"secretFile is missing: it holds the secret of the sender of hmac":                                   {Name: "a", Type: "hmac", TokenFile: "x", SecretFile: "x", Event: "x"},
		"header is for the type hmac":                              {Name: "a", Type: "github", SecretFile: "x", Header: "X", Repository: "main"},
		"routeLabels are for events":                               {Name: "a", Type: "github", SecretFile: "x", RouteLabels: []string{"a"}, Repository: "main"},
		`repository: there is no "mian": use main, site`:           {Name: "a", Type: "github", SecretFile: "x", Repository: "mian"},
		`repository: there is no "": use main, site`:               {Name: "a", Type: "gitlab", SecretFile: "x"},
		"repository is for forges and hmac: json raises events":    {Name: "a", Type: "json", TokenFile: "x", Repository: "main"},
		"of which it tells pushes, or an event, which it raises":   {Name: "a", Type: "hmac", SecretFile: "x", Repository: "main", Event: "a"},
		"event: alerts have names of their own":                    {Name: "a", Type: "alertmanager", TokenFile: "x", Event: "a"},
		"event is missing: the name of what it raises":             {Name: "a", Type: "json", TokenFile: "x"},
		`event: "/a" is no name of an event: expected a path such`: {Name: "a", Type: "hmac", SecretFile: "x", Event: "/a"},
	} {
		if err := Check([]Hook{h}, []string{"main", "site"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	one := Hook{Name: "a", Type: "json", TokenFile: "x", Event: "a"}
	if err := Check([]Hook{one, one}, nil); err == nil || err.Error() != "webhook a: the name is used twice" {
		t.Error(err)
	}
}

// TestSecrets: a file holds secrets that cannot be guessed, or the hook is not served.
func TestSecrets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "webhook a: f holds no secret: openssl rand -hex 32", " \n\n": "holds no secret", "short": "a secret in f has 5 characters, and needs 16", token + "\nshort\n": "has 5 characters", "gone": "there is no f",
	} {
		_, err := New([]Hook{{Name: "a", Type: "json", TokenFile: "f", Event: "a"}}, Outside{Secret: func(string) ([]byte, error) {
			if text == "gone" {
				return nil, errors.New("there is no f")
			}
			return []byte(text), nil
		}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestHostOf: the host of what a label says.
func TestHostOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"web1": "web1", "web1:9100": "web1", "web1.example.org:9100": "web1.example.org", "10.0.0.7": "10.0.0.7", "10.0.0.7:80": "10.0.0.7", "2001:db8::7": "2001:db8::7", "[2001:db8::7]:9100": "2001:db8::7", "[2001:db8::7]": "2001:db8::7",
		"https://web1:8443/probe?x=1": "web1", "http://[2001:db8::7]/": "2001:db8::7", "": "", "a b": "", "../x": "", "-x": "", "web1\n": "", ":9100": "", "://": "",
	} {
		if got := hostOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzBodies: no body ends the process, whoever proved that he sent it, and what comes of it the fleet can keep.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{githubPush, githubTag, githubGone, gitlabPush, gitlabTag, gitlabMerge, giteaPush, alertmanager, `{"ref":"refs/heads/main","commit":"` + after + `"}`, "null", "[]", `{"alerts":null,"version":"4"}`, `{"alerts":[null],"version":"4"}`, `{"head_commit":1}`, "\xff"} {
		f.Add(body, "push")
	}
	f.Fuzz(func(t *testing.T, body, event string) {
		for name, k := range kinds() {
			for _, repository := range []string{"", "main"} {
				e := &endpoint{Hook: Hook{Name: name, Type: name, Event: "a/b", Repository: repository, RouteLabels: []string{"instance", "host"}}}
				header := http.Header{"X-Github-Event": {event}, "X-Gitea-Event": {event}}
				says, err := k.read(e, header, []byte(body))
				if err != nil || says.check() != nil {
					continue
				}
				if says.push != nil {
					if says.push.Commit != strings.ToLower(says.push.Commit) || strings.ContainsAny(says.push.Ref, "\n \x1b") {
						t.Errorf("%+v", says.push)
					}
				}
				for _, one := range says.events {
					one.ID, one.By = "id", "web1"
					if err := one.Check(); err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
}

// FuzzRequests: no headers and no body of somebody without a secret get anywhere.
func FuzzRequests(f *testing.F) {
	for hook := range maps.Keys(map[string]bool{"alerts": true, "github": true, "signed": true, "gitlab": true, "x": true}) {
		f.Add("POST", hook, "Bearer x", "sha256="+signs("x"), "v1,AAAA", "{}")
	}
	f.Fuzz(func(t *testing.T, method, hook, authorization, signature, standard, body string) {
		if strings.Contains(authorization, token) || strings.Contains(signature, signs(body)) {
			t.Skip()
		}
		s := newSite(t)
		r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
		r.Method, r.URL.Path = method, Path+hook
		for _, name := range []string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature", "X-Signature", "X-Built", "X-Gitlab-Token"} {
			r.Header.Set(name, signature)
		}
		r.Header.Set("Authorization", authorization)
		r.Header.Set("Webhook-Id", "1")
		r.Header.Set("Webhook-Timestamp", "1790000000")
		r.Header.Set("Webhook-Signature", standard)
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code < 400 || w.Body.Len() > 0 || len(s.events)+len(s.pushes) > 0 {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}
