//go:build unix

package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// policy is what a browser may do with the page: run and show its own files, and ask this
// server. Nothing in line, nothing from elsewhere, no markup from text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guarded lets through only requests that came by a name of this machine and from no page
// of another origin, and says in every answer what a browser may do with it. Who has shown
// no token keeps no connection.
func guarded(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		h.Set("Connection", "close")
		if !localHost(r.Host) {
			refuse(w, "host", "this server is only reached by a loopback address or localhost")
			return
		}
		if err := origin.Check(asChange(r)); err != nil {
			refuse(w, "cross_origin", "a page of another origin may not ask this server")
			return
		}
		next.ServeHTTP(&plainErrors{ResponseWriter: w}, r)
	})
}

// asChange makes what looks be judged as what changes is: the check of net/http lets every
// GET through, and another origin's page is not to make us look either, as it could with
// open metrics. A link that leads to the page is followed.
func asChange(r *http.Request) *http.Request {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		return r
	}
	change := *r
	change.Method = http.MethodPost
	return &change
}

// localHost reports whether host, with or without a port, is a loopback address or
// localhost. A page that rebinds its own name to this machine still sends that name.
func localHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	return err == nil && addr.Unmap().IsLoopback() && addr.Zone() == ""
}

// authorised lets through only requests that show the token. The sums are compared, so that
// neither the length nor a common beginning is told by the time it takes.
func (s *Server) authorised(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		sum := sha256.Sum256([]byte(given))
		if subtle.ConstantTimeCompare(sum[:], s.token[:]) != 1 || !ok {
			w.Header().Set("WWW-Authenticate", `Bearer realm="holdfast"`)
			refuse(w, "unauthorized", `the token is missing or wrong: send "Authorization: Bearer TOKEN", with what stands in the token file`)
			return
		}
		w.Header().Del("Connection")
		next.ServeHTTP(w, r)
	})
}

// plainErrors gives what the router says of an unknown path or method the form of all other
// errors.
type plainErrors struct {
	http.ResponseWriter
	replaced bool
}

func (p *plainErrors) WriteHeader(status int) {
	if strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		switch status {
		case http.StatusNotFound:
			p.replaced = true
			refuse(p.ResponseWriter, "no_route", "there is nothing at this path; /openapi.json lists what there is")
			return
		case http.StatusMethodNotAllowed:
			p.replaced = true
			refuse(p.ResponseWriter, "method", "this path takes another method; Allow says which")
			return
		}
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *plainErrors) Write(b []byte) (int, error) {
	if p.replaced {
		return len(b), nil
	}
	return p.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (p *plainErrors) Unwrap() http.ResponseWriter { return p.ResponseWriter }
