package server

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// TestContract checks that every operation has the parameters, the body and the
// response type that openapi.yaml declares.
func TestContract(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	r := &router{echo: echo.New(), served: map[string]shape{}, guard: func(string) echo.MiddlewareFunc {
		return func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	}}
	(&handlers{&Server{}}).routes(r)
	for path, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			got, ok := r.served[op.OperationID]
			if !ok {
				t.Errorf("%s %s is not served, want a handler", op.OperationID, path)
				continue
			}
			if got, want := sortedTakes(got.parameters, contract[op.OperationID]), wanted(item, op); !slices.Equal(got, want) {
				t.Errorf("parameters of %s = %q, want %q", op.OperationID, got, want)
			}
			if got, want := got.body.Name(), bodyOf(op); got != want {
				t.Errorf("body of %s = %s, want %s", op.OperationID, got, want)
			}
			if got, want := answers(got.answer), answerOf(op); want != "" && got != want {
				t.Errorf("response of %s = %s, want %s", op.OperationID, got, want)
			}
			if got, want := declaresETag(op), hasETag(got.answer, contract[op.OperationID]); got != want {
				t.Errorf("%s declares the header ETag: %v, want %v: its response is %s", op.OperationID, got, want, answerOf(op))
			}
		}
	}
}

// sortedTakes returns the names of the parameters that an operation reads: its own, and
// those that are read for all operations that declare them.
func sortedTakes(parameters reflect.Type, o operation) []string {
	names := takes(parameters)
	if o.conditional {
		names = append(names, "header If-Match false")
	}
	if o.dryRun {
		names = append(names, "dryRun false")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// takes returns the names of the parameters that are read, except those in the path.
func takes(parameters reflect.Type) (names []string) {
	for i := range parameters.NumField() {
		tag := parameters.Field(i).Tag
		if tag == "" {
			names = append(names, takes(parameters.Field(i).Type)...)
			continue
		}
		name, optional := strings.CutSuffix(tag.Get("form"), ",omitempty")
		if name == "" {
			name, _, _ = strings.Cut(tag.Get("json"), ",")
			name, optional = "header "+name, true
		}
		names = append(names, fmt.Sprintf("%s %v", name, !optional))
	}
	slices.Sort(names)
	return names
}

func wanted(item *openapi3.PathItem, op *openapi3.Operation) (names []string) {
	for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
		switch p.Value.In {
		case "query":
			names = append(names, fmt.Sprintf("%s %v", p.Value.Name, p.Value.Required))
		case "header":
			names = append(names, fmt.Sprintf("header %s %v", p.Value.Name, p.Value.Required))
		}
	}
	slices.Sort(names)
	return names
}

func bodyOf(op *openapi3.Operation) string {
	if op.RequestBody == nil {
		return "none"
	}
	for form, c := range op.RequestBody.Value.Content {
		if form == "application/json" && op.OperationID != "ReceivePaymentEvent" { // its body is signed, so it is read as bytes
			return schemaName(c.Schema)
		}
	}
	return "stream"
}

// answerOf returns the schema of the operation's JSON response; empty if it has none.
func answerOf(op *openapi3.Operation) string {
	responses := op.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if c := responses[status].Value.Content["application/json"]; strings.HasPrefix(status, "2") && c != nil {
			return schemaName(c.Schema)
		}
	}
	return ""
}

// declaresETag reports whether the successful responses of an operation declare the
// header ETag.
func declaresETag(op *openapi3.Operation) bool {
	for status, r := range op.Responses.Map() {
		if strings.HasPrefix(status, "2") && r.Value.Headers["ETag"] != nil {
			return true
		}
	}
	return false
}

// hasETag reports whether a response of the type is an object or settings, to which setETag
// gives an ETag.
func hasETag(answer reflect.Type, o operation) bool {
	if answer.Kind() != reflect.Struct {
		return false
	}
	out := reflect.New(answer)
	if f, ok := answer.FieldByName("Meta"); ok && f.Type == reflect.TypeFor[api.Meta]() {
		out.Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(api.Meta{Revision: 1}))
	}
	h := http.Header{}
	setETag(h, out.Interface(), o)
	return h.Get("ETag") != ""
}

func schemaName(s *openapi3.SchemaRef) string { return s.Ref[strings.LastIndex(s.Ref, "/")+1:] }

// TestDeclaredErrors checks that every operation declares each error that follows from
// its form, by reference to the shared response of that status. servertest checks the
// errors that occur in tests against the declared ones.
func TestDeclaredErrors(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			name, responses := op.OperationID, op.Responses.Map()
			for status, r := range responses {
				code, err := strconv.Atoi(status)
				if err != nil {
					t.Errorf("%s declares status %q, want each status by itself", name, status)
				}
				shared := strings.ReplaceAll(http.StatusText(code), " ", "")
				if code == http.StatusRequestEntityTooLarge { // its name in RFC 9110
					shared = "ContentTooLarge"
				}
				if want := "#/components/responses/" + shared; code >= 400 && r.Ref != want {
					t.Errorf("%s declares status %d with %q, want %s", name, code, r.Ref, want)
				}
			}
			for _, status := range errorsOfForm(method, item, op) {
				if responses[strconv.Itoa(status)] == nil {
					t.Errorf("%s does not declare status %d", name, status)
				}
			}
		}
	}
}

// errorsOfForm returns the statuses of the errors that any operation of that form can
// return.
func errorsOfForm(method string, item *openapi3.PathItem, op *openapi3.Operation) []int {
	all := []int{http.StatusInternalServerError}
	if auth.Rights[op.OperationID] != auth.Everybody {
		all = append(all, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	}
	if len(wanted(item, op)) > 0 {
		all = append(all, http.StatusBadRequest)
	}
	if contract[op.OperationID].conditional {
		all = append(all, http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed)
	}
	switch {
	case op.RequestBody == nil:
	case op.OperationID == "PutUpgradePackage": // an upload that is too large is reported as invalid
		all = append(all, http.StatusBadRequest)
	default:
		all = append(all, http.StatusBadRequest, http.StatusRequestEntityTooLarge)
	}
	if op.RequestBody != nil && (method == http.MethodPatch || bodyOf(op) != "stream") {
		all = append(all, http.StatusUnsupportedMediaType)
	}
	if kind, ok := strings.CutPrefix(op.OperationID, "Create"); ok && method == http.MethodPost && api.Kind(kind).Public() {
		all = append(all, http.StatusConflict, http.StatusInsufficientStorage)
	}
	return all
}

// answers returns the schema of a type: that of a page of flavors is FlavorList.
func answers(t reflect.Type) string {
	if of, ok := strings.CutPrefix(t.Name(), "page["); ok {
		return strings.TrimSuffix(of[strings.LastIndex(of, ".")+1:], "]") + "List"
	}
	return t.Name()
}
