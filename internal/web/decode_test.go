//go:build unix

package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestBodiesThatAreRefused(t *testing.T) {
	s := newScene(t)
	for name, c := range map[string]struct{ path, body, want string }{
		"nothing":             {"/v1/ack", " ", "not one JSON object"},
		"no object":           {"/v1/ack", `["a"]`, "not one JSON object"},
		"half an object":      {"/v1/ack", `{"receipt":"a"`, "ends inside"},
		"half a value":        {"/v1/ack", `{"receipt":"a`, "not JSON"},
		"more behind it":      {"/v1/ack", `{"receipt":"a"} {}`, "more follows"},
		"an unknown field":    {"/v1/ack", `{"receipt":"a","force":true}`, `there is no field "force"; the fields: receipt`},
		"a long name":         {"/v1/ack", `{"` + strings.Repeat("\u00e9", 100) + `":1}`, `\u00e9\u00e9"…; the`},
		"another case":        {"/v1/ack", `{"Receipt":"a"}`, "the fields: receipt"},
		"a field twice":       {"/v1/ack", `{"receipt":"a","receipt":"b"}`, "receipt stands there twice"},
		"a field missing":     {"/v1/ack", `{}`, "receipt is missing"},
		"another type":        {"/v1/ack", `{"receipt":1}`, "receipt: a number cannot stand there"},
		"a fraction":          {"/v1/claim", `{"queue":"a","lease_ms":1.5}`, "cannot stand there"},
		"no lease":            {"/v1/claim", `{"queue":"a"}`, "lease_ms is missing"},
		"a lease of zero":     {"/v1/claim", `{"queue":"a","lease_ms":0}`, "must have a deadline"},
		"a lease for ever":    {"/v1/claim", `{"queue":"a","lease_ms":-1}`, "must have a deadline"},
		"too long a lease":    {"/v1/load", `{"queue":"a","id":"b","lease_ms":86400001}`, "from 1 to 86400000"},
		"an extension":        {"/v1/extend", `{"receipt":"a","lease_ms":0}`, "must have a deadline"},
		"too many":            {"/v1/claim", `{"queue":"a","lease_ms":1,"max":101}`, "from 1 to 100"},
		"too long a wait":     {"/v1/claim", `{"queue":"a","lease_ms":1,"wait_ms":25001}`, "from 0 to 25000"},
		"no payload":          {"/v1/enqueue", `{"queue":"a"}`, "payload is missing"},
		"two times":           {"/v1/enqueue", `{"queue":"a","payload":1,"delay_ms":5,"not_before":"2026-01-01T00:00:00Z"}`, "not both"},
		"a delay before now":  {"/v1/enqueue", `{"queue":"a","payload":1,"delay_ms":-1}`, "delay_ms is -1"},
		"within a batch":      {"/v1/enqueue-batch", `{"queue":"a","messages":[{"payload":1},{"payload":1,"idd":"x"}]}`, `messages[1]: there is no field "idd"; the fields: `},
		"missing in a batch":  {"/v1/enqueue-batch", `{"queue":"a","messages":[{"id":"x"}]}`, "payload is missing"},
		"an empty batch":      {"/v1/enqueue-batch", `{"queue":"a","messages":[]}`, "from 1 to"},
		"its type embedded":   {"/v1/retry", `{"receipt":1}`, "!receipt: a number cannot stand there"},
		"in a query":          {"/v1/claim?max=5", `{"queue":"a","lease_ms":1}`, "none in the query"},
		"a batch of too many": {"/v1/enqueue-batch", `{"queue":"a","messages":[` + strings.Repeat(`{"payload":1},`, 10000) + `{"payload":1}]}`, "more than 10000"},
		"a batch of null":     {"/v1/enqueue-batch", `{"queue":"a","messages":null}`, "not an array"},
		"a batch of no array": {"/v1/enqueue-batch", `{"queue":"a","messages":{}}`, "messages is not an array"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := s.post(c.path, c.body)
			if l := refused(t, status, body, http.StatusBadRequest, "bad_request"); !strings.Contains("!"+l.Error, c.want) {
				t.Errorf("got %q, want %q in it", l.Error, c.want)
			}
		})
	}
	if status, body := s.get("/v1/status"); must[statusLine](t, status, body).Revision != 0 {
		t.Errorf("a refused request changed the store: %s", body)
	}
}

func TestQueriesThatAreRefused(t *testing.T) {
	s := newScene(t)
	for path, want := range map[string]string{
		"/v1/messages":                    "queue is missing",
		"/v1/messages?queue=a&limit=x":    "limit is not a number",
		"/v1/messages?queue=a&limit=1001": "from 1 to 1000",
		"/v1/messages?queue=a&queue=b":    "queue stands there twice",
		"/v1/messages?queue=a&state=x":    `no parameter "state"`,
		"/v1/status?oldest=perhaps":       "oldest is not true or false",
		"/v1/failed-message?namespace=a":  "failed_name is missing",
		"/v1/message?queue=a%zz&id=b":     "not as it must be",
	} {
		status, body := s.get(path)
		if l := refused(t, status, body, http.StatusBadRequest, "bad_request"); !strings.Contains(l.Error, want) {
			t.Errorf("%s: got %q, want %q in it", path, l.Error, want)
		}
	}
}

func TestMediaTypeAndSize(t *testing.T) {
	s := newScene(t)
	r := request("POST", "/v1/ack", "{}")
	r.Header.Set("Content-Type", "text/plain")
	status, body := s.send(r)
	refused(t, status, body, http.StatusUnsupportedMediaType, "media_type")
	status, body = s.post("/v1/ack", `{"receipt":"`+strings.Repeat("x", smallBody)+`"}`)
	refused(t, status, body, http.StatusRequestEntityTooLarge, "body_too_large")
	status, body = s.post("/v1/enqueue", `{"queue":"mail","payload":"`+strings.Repeat("x", 16<<20)+`"}`)
	refused(t, status, body, http.StatusRequestEntityTooLarge, "too_large")
}

// What is no batch costs no more than its bytes: one that is wrong at its start is not taken
// apart to its end.
func TestABatchOfNothingCostsLittle(t *testing.T) {
	body := []byte(`{"queue":"a","messages":[` + strings.Repeat("0,", 1<<20) + `0]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := decodeJSON(body, &enqueueBatchIn{}); err == nil {
		t.Fatal("it was taken")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 16*uint64(len(body)) {
		t.Errorf("a body of %d bytes took %d bytes of memory", len(body), took)
	}
}

// Whatever the bytes: no panic, and what is taken has each field by its exact name, once.
func FuzzDecodeRequest(f *testing.F) {
	var ins []reflect.Type
	for _, r := range routes {
		if r.body > 0 {
			ins = append(ins, r.in)
		}
	}
	for i, body := range []string{
		`{"queue":"a","payload":{"n":12345678901234567890}}`, `{"queue":"a","messages":[{"payload":null,"id":"b"}]}`,
		`{"queue":"a","lease_ms":1000,"wait_ms":5}`, `{"queue":"a","id":"b","lease_ms":1}`, `{"receipt":"s:a:b:g:1"}`,
		`{"receipt":"r","delay_ms":1}`, `{"receipt":"r","receipt":"s"}`, `{"Receipt":"r"}`, `[]`, `{}{}`,
	} {
		f.Add(uint8(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		in := ins[int(which)%len(ins)]
		v := reflect.New(in)
		if err := decodeJSON(body, v.Interface()); err != nil {
			var own *ownError
			if !errors.As(err, &own) || own.code != "bad_request" {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			t.Fatalf("taken, though it is no object: %v", err)
		}
		for name := range fields {
			if _, known := fieldOf(in, name); !known {
				t.Errorf("the field %q was taken", name)
			}
		}
		for _, field := range reflect.VisibleFields(in) {
			if _, there := fields[nameOf(field)]; required(field) && !there {
				t.Errorf("%s is missing, and it was taken", nameOf(field))
			}
		}
	})
}
