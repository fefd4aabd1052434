package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/basalt-gpu/basalt/api"
)

// TestContract calls every method of the client and of its collections, and checks each
// request against openapi.yaml: the operation exists, and has these parameters and a
// body or none. Operations without a method are listed below.
func TestContract(t *testing.T) {
	operations := contract(t)
	asked, tried := map[string]bool{}, map[string]bool{}
	for _, r := range requestsOfAll(t) {
		if strings.HasPrefix(r.path, "/v1/setup") {
			continue // local socket only: not a part of the API
		}
		o := operations.of(r)
		if o == nil {
			t.Errorf("%s %s is not in openapi.yaml", r.method, r.path)
			continue
		}
		asked[o.ID] = true
		if slices.Contains(r.query, dryRun) {
			tried[o.ID] = true
		}
		if r.body != (o.RequestBody != nil) {
			t.Errorf("%s (%s %s) has a body = %v, want %v", o.ID, r.method, r.path, r.body, !r.body)
		}
		for _, name := range r.query {
			if !slices.Contains(o.query, name) {
				t.Errorf("%s (%s %s) has parameter %q, want one of %q", o.ID, r.method, r.path, name, o.query)
			}
		}
	}
	var rest []string
	for _, o := range operations {
		if slices.Contains(o.query, dryRun) != tried[o.ID] {
			t.Errorf("%s has a dry run = %v, but the client requests one = %v", o.ID, !tried[o.ID], tried[o.ID])
		}
		if !asked[o.ID] {
			rest = append(rest, o.ID)
		}
	}
	slices.Sort(rest)
	if !slices.Equal(rest, notAsked) {
		t.Errorf("operations without a method of the client:\n got %q\nwant %q", rest, notAsked)
	}
}

const dryRun = "dryRun"

// notAsked are operations that only browsers and load balancers call.
var notAsked = []string{"DeleteSession", "FinishSignUp", "GetHealth", "GetLogo", "GetOrganizationLogo", "GetSignUp", "ListSessions", "ReceivePaymentEvent", "ReceiveSAMLResponse", "RequestSignUp"}

// operation is an operation of openapi.yaml.
type operation struct {
	ID          string `json:"operationId"`
	Parameters  []parameter
	RequestBody any

	method string
	path   *regexp.Regexp
	query  []string
}

type parameter struct {
	Ref  string `json:"$ref"`
	Name string
	In   string
}

type operations []*operation

func (all operations) of(r sent) *operation {
	i := slices.IndexFunc(all, func(o *operation) bool { return o.method == r.method && o.path.MatchString(r.path) })
	if i < 0 {
		return nil
	}
	return all[i]
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// contract returns the operations of openapi.yaml, paths without parameters first.
func contract(t *testing.T) operations {
	t.Helper()
	var in struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Parameters map[string]parameter }
	}
	if err := yaml.Unmarshal(api.OpenAPI, &in); err != nil {
		t.Fatal(err)
	}
	var plain, others operations
	for path, methods := range in.Paths {
		var common []parameter
		if raw, ok := methods["parameters"]; ok {
			decode(t, raw, &common)
			delete(methods, "parameters")
		}
		for method, raw := range methods {
			o := &operation{method: strings.ToUpper(method), path: regexp.MustCompile("^" + placeholder.ReplaceAllString(path, "[^/]+") + "$")}
			decode(t, raw, o)
			for _, p := range append(o.Parameters, common...) {
				if p.Ref != "" {
					p = in.Components.Parameters[p.Ref[strings.LastIndex(p.Ref, "/")+1:]]
				}
				if p.In == "query" {
					o.query = append(o.query, p.Name)
				}
			}
			if placeholder.MatchString(path) {
				others = append(others, o)
			} else {
				plain = append(plain, o)
			}
		}
	}
	return append(plain, others...)
}

func decode(t *testing.T, raw json.RawMessage, out any) {
	t.Helper()
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
}

// sent is a request that the client sent.
type sent struct {
	method, path string
	query        []string
	body         bool
}

// requestsOfAll calls every method with non-zero arguments and returns the requests.
func requestsOfAll(t *testing.T) []sent {
	t.Helper()
	var mu sync.Mutex
	var all []sent
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		one := sent{method: r.Method, path: r.URL.Path, body: len(raw) > 0}
		for name := range r.URL.Query() {
			one.query = append(one.query, name)
		}
		mu.Lock()
		all = append(all, one)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items": [{}], "meta": {}}`+"\n")
	}))
	defer s.Close()
	a, err := New(Options{Server: s.URL, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	for name, method := range methodsOf(a) {
		if name == "Address" {
			continue
		}
		exhaust(method.Call(arguments(t, method.Type())))
	}
	for _, c := range collections(a) {
		for _, method := range methodsOf(c) {
			exhaust(method.Call(arguments(t, method.Type())))
		}
	}
	return all
}

// collections returns collections of all kinds. The requests do not depend on the type
// of the objects.
func collections(a *API) (all []Collection[api.Flavor]) {
	for _, k := range api.Kinds() {
		all = append(all, Collection[api.Flavor]{a: a, kind: k}, Collection[api.Flavor]{a: a, kind: k, dry: true})
	}
	return all
}

func methodsOf(x any) map[string]reflect.Value {
	v, out := reflect.ValueOf(x), map[string]reflect.Value{}
	for i := range v.NumMethod() {
		out[v.Type().Method(i).Name] = v.Method(i)
	}
	return out
}

// exhaust takes the first item of the iterator that a method has returned, if any.
func exhaust(out []reflect.Value) {
	if out[0].Kind() != reflect.Func {
		return
	}
	yield := reflect.MakeFunc(out[0].Type().In(0), func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.ValueOf(false)} })
	out[0].Call([]reflect.Value{yield})
}

func arguments(t *testing.T, method reflect.Type) []reflect.Value {
	t.Helper()
	n := method.NumIn()
	if method.IsVariadic() {
		n--
	}
	in := make([]reflect.Value, n)
	for i := range in {
		switch of := method.In(i); of {
		case reflect.TypeFor[context.Context]():
			in[i] = reflect.ValueOf(t.Context())
		case reflect.TypeFor[io.Writer]():
			in[i] = reflect.ValueOf(io.Discard)
		case reflect.TypeFor[io.Reader]():
			in[i] = reflect.ValueOf(io.NopCloser(strings.NewReader("x")))
		case reflect.TypeFor[any]():
			in[i] = reflect.ValueOf(struct{}{})
		default:
			in[i] = filled(of, 4)
		}
	}
	return in
}

// filled returns a value in which no field is zero, down to a depth.
func filled(of reflect.Type, depth int) reflect.Value {
	v := reflect.New(of).Elem()
	if of == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 11, 26, 0, 0, 0, 1, time.UTC)))
		return v
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for i := range v.NumField() {
			if depth > 0 && v.Type().Field(i).IsExported() {
				v.Field(i).Set(filled(v.Field(i).Type(), depth-1))
			}
		}
	case reflect.Slice:
		if depth > 0 {
			v = reflect.Append(v, filled(of.Elem(), depth-1))
		}
	}
	return v
}
