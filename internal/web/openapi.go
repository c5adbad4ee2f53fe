//go:build unix

package web

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"
)

type object = map[string]any

// Description gives the OpenAPI document of the API. It is made of the same table and types
// that answer requests, so that it cannot say otherwise than they do.
var Description = sync.OnceValue(func() []byte {
	schemas := object{}
	schemaOf(reflect.TypeFor[errorLine](), schemas)
	paths := object{}
	failure := object{
		"description": "an error, with a stable code",
		"content":     jsonContent(object{"$ref": "#/components/schemas/Error"}),
	}
	for _, r := range routes {
		call := object{
			"operationId": strings.ReplaceAll(strings.TrimPrefix(r.path, "/v1/"), "-", "_"),
			"summary":     r.summary,
			"responses": object{
				"200":     object{"description": "done", "content": jsonContent(schemaOf(r.out, schemas))},
				"default": failure,
			},
		}
		if r.body > 0 {
			call["requestBody"] = object{"required": true, "content": jsonContent(schemaOf(r.in, schemas))}
		} else if parameters := parametersOf(r.in, schemas); len(parameters) > 0 {
			call["parameters"] = parameters
		}
		paths[r.path] = object{strings.ToLower(r.method): call}
	}
	text, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "holdfast serve", "version": "1",
			"description": "A durable JSON queue. Every call needs the token. Codes of errors, leases and what to do when an answer is uncertain: docs/serve.md.",
		},
		"security": []any{object{"token": []string{}}},
		"paths":    paths,
		"components": object{
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
			"schemas":         schemas,
		},
	}, "", " ")
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return append(text, '\n')
})

func described() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(Description()) // who has gone does not want it
	})
}

func jsonContent(schema object) object { return object{"application/json": object{"schema": schema}} }

func parametersOf(t reflect.Type, schemas object) (all []object) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		all = append(all, object{
			"name": nameOf(f), "in": "query", "required": required(f), "description": f.Tag.Get("doc"),
			"schema": schemaOf(f.Type, schemas),
		})
	}
	return all
}

// schemaOf describes a type. A struct is named, and described once.
func schemaOf(t reflect.Type, schemas object) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{"description": "any JSON value"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return object{"anyOf": []any{schemaOf(t.Elem(), schemas), object{"type": "null"}}}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem(), schemas)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(t.Elem(), schemas)}
	case reflect.Struct:
		name := strings.TrimSuffix(t.Name(), "Line")
		name = strings.ToUpper(name[:1]) + name[1:]
		if _, known := schemas[name]; !known {
			schemas[name] = nil // it may hold itself
			schemas[name] = structOf(t, schemas)
		}
		return object{"$ref": "#/components/schemas/" + name}
	}
	panic("a type that no request has: " + t.String())
}

func structOf(t reflect.Type, schemas object) object {
	properties, must := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		schema := schemaOf(f.Type, schemas)
		if doc := f.Tag.Get("doc"); doc != "" {
			schema["description"] = doc
		}
		properties[nameOf(f)] = schema
		if required(f) {
			must = append(must, nameOf(f))
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(must) > 0 {
		s["required"] = must
	}
	return s
}
