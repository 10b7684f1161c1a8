package metrics

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check is something that has to hold; Why is nil where it does.
type Check struct {
	Name string
	Why  error
}

// Served is what a host answers.
type Served struct {
	View    func() View
	May     func(*http.Request) bool // read /metrics; nil: nobody may, and there is no such page
	Healthy func() []Check
	Ready   func() []Check
	Others  http.Handler // other paths
}

// maxScrapes is how many scrapes are answered at a time.
const maxScrapes = 4

// Handler answers /metrics, /healthz and /readyz.
func Handler(s Served) http.Handler {
	registry := Registry(s.View)
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes, Timeout: 10 * time.Second,
	})
	answers := map[string]http.HandlerFunc{
		"/metrics": s.allowed(page), "/healthz": checked(s.Healthy), "/readyz": checked(s.Ready),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answers[r.URL.Path]
		switch {
		case answer == nil:
			s.Others.ServeHTTP(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			answer(w, r)
		}
	})
}

// allowed shows a page to who may see it.
func (s Served) allowed(page http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.May == nil:
			w.WriteHeader(http.StatusNotFound)
		case !s.May(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
		default:
			page.ServeHTTP(w, r)
		}
	}
}

// checked says whether all checks hold; to the host itself, with ?verbose, each by its name.
func checked(checks func() []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, short := http.StatusOK, "ok\n"
		var long strings.Builder
		for _, c := range checks() {
			said := "ok"
			if c.Why != nil {
				status, short, said = http.StatusServiceUnavailable, "not ok\n", "not ok: "+text(c.Why.Error())
			}
			fmt.Fprintf(&long, "%s: %s\n", c.Name, said)
		}
		if _, verbose := r.URL.Query()["verbose"]; verbose && fromHere(r) {
			short = long.String()
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		fmt.Fprint(w, short)
	}
}

// fromHere reports a request of this host, or of a proxy on it.
func fromHere(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}
