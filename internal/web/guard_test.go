//go:build unix

package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever tells or changes something of the store needs the token; what does not, none.
func TestEveryRouteNeedsTheToken(t *testing.T) {
	s := newScene(t)
	guardedPaths := []string{"GET /metrics"}
	for _, r := range routes {
		guardedPaths = append(guardedPaths, r.method+" "+r.path)
	}
	for _, at := range guardedPaths {
		method, path, _ := strings.Cut(at, " ")
		for name, header := range map[string]string{
			"none": "", "empty": "Bearer ", "another": "Bearer another-token-0123456789", "its beginning": "Bearer " + webToken[:10],
			"more than it": "Bearer " + webToken + "x", "another scheme": "Basic " + webToken, "bare": webToken,
		} {
			r := request(method, path, "")
			r.Header.Del("Authorization")
			if header != "" {
				r.Header.Set("Authorization", header)
			}
			status, body := s.send(r)
			if l := refused(t, status, body, http.StatusUnauthorized, "unauthorized"); strings.Contains(l.Error, webToken) {
				t.Errorf("%s with %s: the token is in the answer", at, name)
			}
		}
		r := request(method, path+"?token="+webToken, "")
		r.Header.Del("Authorization")
		if status, _ := s.send(r); status != http.StatusUnauthorized {
			t.Errorf("%s: a token in the URL gave %d", at, status)
		}
		if status, body := s.send(request(method, path, "{}")); status == http.StatusUnauthorized {
			t.Errorf("%s: with the token: %s", at, body)
		}
	}
	for _, path := range []string{"/", "/page.css", "/page.js", "/openapi.json"} {
		r := request("GET", path, "")
		r.Header.Del("Authorization")
		if status, _ := s.send(r); status != http.StatusOK {
			t.Errorf("%s without a token: %d", path, status)
		}
	}
	open := New(Config{Store: s.store, Token: webToken, Classify: webClassify, MetricsOpen: true})
	for path, want := range map[string]int{"/metrics": http.StatusOK, "/v1/status": http.StatusUnauthorized} {
		w, r := httptest.NewRecorder(), request("GET", path, "")
		r.Header.Del("Authorization")
		if open.ServeHTTP(w, r); w.Code != want {
			t.Errorf("with open metrics %s gave %d, want %d", path, w.Code, want)
		}
	}
}

// A name that is not this machine's is refused, whatever the request: a page that made its
// own name mean this machine would be let through else.
func TestHost(t *testing.T) {
	s := newScene(t)
	for host, want := range map[string]int{
		"127.0.0.1:7340": 200, "127.0.0.1": 200, "127.8.9.1:1": 200, "[::1]:7340": 200, "[::1]": 200, "localhost": 200,
		"LocalHost:80": 200, "[::ffff:127.0.0.1]:80": 200,
		"": 403, "evil.example": 403, "evil.example:7340": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403,
		"192.168.1.5:7340": 403, "0.0.0.0:7340": 403, "[fe80::1%25lo]": 403, "[::1%25lo]:80": 403, "[2001:db8::1]:7340": 403, "localhost.": 403,
	} {
		for _, path := range []string{"/", "/v1/status", "/metrics"} {
			r := request("GET", path, "")
			r.Host = host
			status, body := s.send(r)
			if status != want {
				t.Errorf("%q %s: got %d, want %d: %s", host, path, status, want, body)
			}
		}
	}
}

// A page of another origin may neither ask nor read.
func TestOtherOrigins(t *testing.T) {
	s := newScene(t)
	for name, c := range map[string]struct {
		header, value string
		want          int
	}{
		"its own page":        {"Sec-Fetch-Site", "same-origin", 200},
		"no browser":          {"X-None", "", 200},
		"another site":        {"Sec-Fetch-Site", "cross-site", 403},
		"another port":        {"Sec-Fetch-Site", "same-site", 403},
		"an origin elsewhere": {"Origin", "https://evil.example", 403},
	} {
		t.Run(name, func(t *testing.T) {
			r := request("POST", "/v1/enqueue", `{"queue":"mail","payload":1}`)
			r.Header.Set(c.header, c.value)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("got %d, want %d: %s", w.Code, c.want, w.Body)
			}
			for header := range w.Header() {
				if strings.HasPrefix(header, "Access-Control-") {
					t.Errorf("the answer has %s", header)
				}
			}
		})
	}
	for name, c := range map[string]struct {
		path, site, mode string
		want             int
	}{
		"its own page looks":        {"/v1/status", "same-origin", "cors", 200},
		"its own page's files":      {"/page.js", "same-origin", "no-cors", 200},
		"typed, or a bookmark":      {"/", "none", "navigate", 200},
		"a link from elsewhere":     {"/", "cross-site", "navigate", 200},
		"another site looks":        {"/v1/status", "cross-site", "cors", 403},
		"another site loads":        {"/metrics", "cross-site", "no-cors", 403},
		"another port's page loads": {"/page.js", "same-site", "no-cors", 403},
	} {
		t.Run(name, func(t *testing.T) {
			r := request("GET", c.path, "")
			r.Header.Set("Sec-Fetch-Site", c.site)
			r.Header.Set("Sec-Fetch-Mode", c.mode)
			if status, body := s.send(r); status != c.want {
				t.Errorf("got %d, want %d: %s", status, c.want, body)
			}
		})
	}
	r := request("OPTIONS", "/v1/enqueue", "")
	r.Header.Set("Origin", "https://evil.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
	if status, body := s.send(r); status != http.StatusMethodNotAllowed {
		t.Errorf("a preflight got %d %s", status, body)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	s := newScene(t)
	for _, path := range []string{"/", "/page.js", "/v1/status", "/v1/nothing", "/metrics"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, request("GET", path, ""))
		for header, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		} {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", path, header, got, want)
			}
		}
	}
	for _, never := range []string{"unsafe-inline", "unsafe-eval", "http:", "https:", "*", "data:"} {
		if strings.Contains(policy, never) {
			t.Errorf("the policy lets through %s", never)
		}
	}
}

// What the router refuses has the form of all errors.
func TestNoSuchRoute(t *testing.T) {
	s := newScene(t)
	status, body := s.get("/v1/nothing")
	refused(t, status, body, http.StatusNotFound, "no_route")
	status, body = s.get("/v1/enqueue")
	refused(t, status, body, http.StatusMethodNotAllowed, "method")
	status, body = s.post("/", "{}")
	refused(t, status, body, http.StatusMethodNotAllowed, "method")
}
