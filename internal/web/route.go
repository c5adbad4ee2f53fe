//go:build unix

package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
)

// Bounds of a request's body. The large ones hold payloads.
const (
	smallBody = 64 << 10
	oneBody   = 17 << 20 // a payload of 16 MiB and its message
	batchBody = 32 << 20
)

// A route is one call of the API. The forms of what goes in and comes out are in its types,
// which the description is made of.
type route struct {
	method, path string
	summary      string
	body         int64 // its bound; 0: there is none, and in is of the query
	in, out      reflect.Type
	do           func(ctx context.Context, s *Server, in any) (any, error)
}

// post is a route that changes something: its arguments are a JSON object.
func post[I, O any](path string, body int64, summary string, do func(context.Context, *Server, I) (O, error)) route {
	r := get(path, summary, do)
	r.method, r.body = http.MethodPost, body
	return r
}

// get is a route that looks: its arguments are in the query.
func get[I, O any](path, summary string, do func(context.Context, *Server, I) (O, error)) route {
	return route{
		method: http.MethodGet, path: path, summary: summary, in: reflect.TypeFor[I](), out: reflect.TypeFor[O](),
		do: func(ctx context.Context, s *Server, in any) (any, error) { return do(ctx, s, *in.(*I)) },
	}
}

// answer is the handler of a route.
func (s *Server) answer(r route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		out, err := s.call(w, req, r)
		if err != nil {
			line, status := s.told(err)
			if line.Code == "too_many_waits" {
				w.Header().Set("Retry-After", "1")
			}
			writeJSON(w, status, line)
			return
		}
		writeJSON(w, http.StatusOK, out)
	})
}

func (s *Server) call(w http.ResponseWriter, req *http.Request, r route) (any, error) {
	in := reflect.New(r.in).Interface()
	var err error
	if r.body > 0 {
		err = decodeBody(w, req, r.body, in)
	} else {
		err = decodeQuery(req.URL.RawQuery, in)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), answerWithin)
	defer cancel()
	return r.do(ctx, s, in)
}

// writeJSON writes v with <, > and & as themselves: it is never part of a page.
func writeJSON(w http.ResponseWriter, status int, v any) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // our own forms always encode, and payloads were checked
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // who has gone does not want it
}
