//go:build unix

package web

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The description has every route and nothing else; every reference in it leads somewhere,
// and every field says what it is where its name does not.
func TestDescription(t *testing.T) {
	var d struct {
		OpenAPI  string
		Security []map[string][]string
		Paths    map[string]map[string]struct {
			OperationID string
			Summary     string
			RequestBody *struct{ Required bool }
			Parameters  []struct {
				Name, In string
				Required bool
			}
			Responses map[string]json.RawMessage
		}
		Components struct {
			SecuritySchemes map[string]struct{ Type, Scheme string }
			Schemas         map[string]struct {
				Properties map[string]json.RawMessage
				Required   []string
			}
		}
	}
	if err := json.Unmarshal(Description(), &d); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(d.OpenAPI, "3.1.") || len(d.Security) != 1 || d.Components.SecuritySchemes["token"].Scheme != "bearer" {
		t.Errorf("version %q, security %v", d.OpenAPI, d.Security)
	}
	if len(d.Paths) != len(routes) {
		t.Errorf("%d paths, %d routes", len(d.Paths), len(routes))
	}
	var ids []string
	for _, r := range routes {
		call, ok := d.Paths[r.path][strings.ToLower(r.method)]
		if !ok || call.Summary == "" || call.Responses["200"] == nil || call.Responses["default"] == nil {
			t.Errorf("%s %s is not described: %+v", r.method, r.path, call)
		}
		if (r.body > 0) != (call.RequestBody != nil && call.RequestBody.Required) {
			t.Errorf("%s: its body is not described", r.path)
		}
		if slices.Contains(ids, call.OperationID) {
			t.Errorf("%s: operation %s is another's too", r.path, call.OperationID)
		}
		ids = append(ids, call.OperationID)
	}
	for _, ref := range regexp.MustCompile(`"\$ref": "([^"]+)"`).FindAllStringSubmatch(string(Description()), -1) {
		if name, ok := strings.CutPrefix(ref[1], "#/components/schemas/"); !ok || len(d.Components.Schemas[name].Properties) == 0 && name != "Nothing" {
			t.Errorf("%s leads nowhere", ref[1])
		}
	}
	if claim := d.Components.Schemas["ClaimIn"]; !slices.Equal(claim.Required, []string{"queue", "lease_ms"}) || claim.Properties["wait_ms"] == nil {
		t.Errorf("a claim's arguments: %v", claim)
	}
	if p := d.Paths["/v1/messages"]["get"].Parameters; len(p) != 3 || p[0].Name != "queue" || !p[0].Required || p[0].In != "query" {
		t.Errorf("parameters of messages: %+v", p)
	}
}

// docs/serve.md has every route, every code of the server's own, and every metric.
func TestDocsAreWhole(t *testing.T) {
	text, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range routes {
		want = append(want, "`"+r.method+" "+r.path+"`")
	}
	for code := range Codes {
		want = append(want, "| `"+code+"` |")
	}
	for _, name := range metricNames(t) {
		want = append(want, "`"+name+"`")
	}
	if len(want) < 50 {
		t.Errorf("only %d names to look for", len(want))
	}
	for _, s := range want {
		if !strings.Contains(string(text), s) {
			t.Errorf("docs/serve.md does not have %s", s)
		}
	}
}
