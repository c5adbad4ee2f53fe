//go:build unix

package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"example.com/holdfast/queue"
)

// decodeBody reads the JSON object of a request into v, a pointer to a struct. It takes
// exactly the fields that the struct has, each once and by its exact name: a misspelt option
// that is silently left out would change what a call does.
func decodeBody(w http.ResponseWriter, r *http.Request, most int64, v any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return &ownError{"media_type", "the body must be JSON: send Content-Type: application/json"}
	}
	if r.URL.RawQuery != "" {
		return badf("this request takes its arguments in the body, and none in the query")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return &ownError{"body_too_large", "the body of this request may have at most " + strconv.FormatInt(most, 10) + " bytes"}
	case err != nil:
		return badf("the body did not arrive whole")
	}
	return decodeJSON(body, v)
}

func decodeJSON(body []byte, v any) error {
	if err := checkFields(body, reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	err := json.Unmarshal(body, v)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return badf("%s: a %s cannot stand there", fieldPath(wrong.Field), wrong.Value)
	case err != nil:
		return badf("the body is not as it must be: %v", err)
	}
	return nil
}

// fieldPath leaves out of a path the types that fields are embedded by, which are no part
// of the request. They end in In, and no field's name has a capital letter.
func fieldPath(path string) string {
	parts := strings.Split(path, ".")
	parts = slices.DeleteFunc(parts, func(p string) bool { return strings.HasSuffix(p, "In") })
	return strings.Join(parts, ".")
}

// checkFields checks the names of an object's fields, and of those of the objects in them;
// the values are not looked at, for a payload is not ours to judge here.
func checkFields(text []byte, t reflect.Type) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return badf("the body is not one JSON object")
	}
	var seen []string
	for d.More() {
		token, err := d.Token()
		name, _ := token.(string)
		if err != nil {
			return badf("the body is not one JSON object")
		}
		field, known := fieldOf(t, name)
		switch {
		case !known:
			return badf("there is no field %s; the fields: %s", quoted(name), strings.Join(namesOf(t), ", "))
		case slices.Contains(seen, name):
			return badf("the field %s stands there twice", name)
		}
		seen = append(seen, name)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return badf("the value of %s is not JSON", name)
		}
		if e := field.Type; e.Kind() == reflect.Slice && e.Elem().Kind() == reflect.Struct {
			if err := checkElements(name, value, e.Elem()); err != nil {
				return err
			}
		}
	}
	if _, err := d.Token(); err != nil {
		return badf("the body ends inside its object")
	}
	for _, f := range reflect.VisibleFields(t) {
		if required(f) && !slices.Contains(seen, nameOf(f)) {
			return badf("the field %s is missing", nameOf(f))
		}
	}
	if _, err := d.Token(); err != io.EOF {
		return badf("more follows the body's object")
	}
	return nil
}

// quoted gives a name as somebody sent it: as text, and no more of it than tells which.
func quoted(name string) string {
	const most = 64
	if len(name) > most {
		return strconv.QuoteToASCII(name[:most]) + "…"
	}
	return strconv.QuoteToASCII(name)
}

// checkElements is checkFields for each object of an array. It stops at the first that is
// wrong and at the bound: a body of nothing but commas would else become gigabytes.
func checkElements(name string, text []byte, t reflect.Type) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return badf("%s is not an array", name)
	}
	for i := 0; d.More(); i++ {
		if i == queue.MaxUpdate {
			return badf("%s has more than %d elements", name, queue.MaxUpdate)
		}
		var element json.RawMessage
		if err := d.Decode(&element); err != nil {
			return badf("%s[%d] is not JSON", name, i)
		}
		if err := checkFields(element, t); err != nil {
			return badf("%s[%d]: %v", name, i, err)
		}
	}
	return nil
}

// decodeQuery reads the parameters of a request into v, a pointer to a struct, as strictly.
func decodeQuery(query string, v any) error {
	given, err := url.ParseQuery(query)
	if err != nil {
		return badf("the query is not as it must be")
	}
	to := reflect.ValueOf(v).Elem()
	for name, values := range given {
		field, known := fieldOf(to.Type(), name)
		if !known {
			return badf("there is no parameter %s; the parameters: %s", quoted(name), strings.Join(namesOf(to.Type()), ", "))
		}
		at := to.FieldByIndex(field.Index)
		if at.Kind() == reflect.Slice {
			at.Set(reflect.ValueOf(values))
			continue
		}
		if len(values) > 1 {
			return badf("the parameter %s stands there twice", name)
		}
		switch at.Kind() {
		case reflect.String:
			at.SetString(values[0])
		case reflect.Int:
			n, err := strconv.Atoi(values[0])
			if err != nil {
				return badf("%s is not a number", name)
			}
			at.SetInt(int64(n))
		case reflect.Bool:
			b, err := strconv.ParseBool(values[0])
			if err != nil {
				return badf("%s is not true or false", name)
			}
			at.SetBool(b)
		default:
			panic("a parameter of a type that no query has: " + name)
		}
	}
	for _, f := range reflect.VisibleFields(to.Type()) {
		if required(f) && !given.Has(nameOf(f)) {
			return badf("the parameter %s is missing", nameOf(f))
		}
	}
	return nil
}

func required(f reflect.StructField) bool { return f.Tag.Get("required") == "true" }

// fieldOf finds a field by its exact JSON name.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous && nameOf(f) == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func namesOf(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			names = append(names, nameOf(f))
		}
	}
	return names
}
