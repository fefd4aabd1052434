package server

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

//go:embed docs.html.tmpl
var docsTemplate string

// docsPolicy reflects that the page has no scripts and loads nothing from other hosts.
const docsPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func registerDocs(e *echo.Echo) {
	render := sync.OnceValues(func() ([]byte, error) { return renderDocs(api.OpenAPI) })
	e.GET("/docs", func(c echo.Context) error {
		html, err := render()
		if err != nil {
			return err
		}
		c.Response().Header().Set("Content-Security-Policy", docsPolicy)
		return c.HTMLBlob(http.StatusOK, html)
	})
	e.GET("/openapi.yaml", func(c echo.Context) error {
		return c.Blob(http.StatusOK, "application/yaml", api.OpenAPI)
	})
}

type docsPage struct {
	Title, Version string
	About          []template.HTML
	Codes          []docsCode
	Statuses       []docsAnswer
	Tags           []docsTag
	Schemas        []docsSchema
}

type docsTag struct {
	Name       string
	About      template.HTML
	Operations []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary, Role string
	About                           template.HTML
	Parameters                      []docsField
	Body                            template.HTML
	Example                         string
	Answers                         []docsAnswer
	Errors                          []docsAnswer
}

type docsAnswer struct {
	Status      string
	About, Type template.HTML
}

type docsField struct {
	Name        string
	Type, About template.HTML
	Required    bool
}

type docsSchema struct {
	Name   string
	About  template.HTML
	Fields []docsField
}

// renderDocs renders the API's description as an HTML page.
func renderDocs(spec []byte) ([]byte, error) {
	doc, err := openapi3.NewLoader().LoadFromData(spec)
	if err != nil {
		return nil, fmt.Errorf("load openapi.yaml: %w", err)
	}
	page := docsPage{Title: doc.Info.Title, Version: doc.Info.Version, Codes: errorCodes(doc), Statuses: errorStatuses(doc)}
	for _, p := range strings.Split(strings.TrimSpace(doc.Info.Description), "\n\n") {
		page.About = append(page.About, prose(p))
	}
	for _, t := range doc.Tags {
		page.Tags = append(page.Tags, docsTag{Name: t.Name, About: prose(t.Description), Operations: operations(doc, t.Name)})
	}
	for _, name := range sortedKeys(doc.Components.Schemas) {
		s := doc.Components.Schemas[name].Value
		page.Schemas = append(page.Schemas, docsSchema{Name: name, About: prose(s.Description), Fields: fields(s)})
	}
	t, err := template.New("docs").Parse(docsTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, page); err != nil {
		return nil, fmt.Errorf("render documentation page: %w", err)
	}
	return out.Bytes(), nil
}

func operations(doc *openapi3.T, tag string) []docsOperation {
	var out []docsOperation
	for _, path := range doc.Paths.InMatchingOrder() {
		item := doc.Paths.Find(path)
		for method, op := range item.Operations() {
			if !slices.Contains(op.Tags, tag) {
				continue
			}
			o := docsOperation{ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, Role: roleWords(op.OperationID), About: prose(op.Description)}
			for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
				o.Parameters = append(o.Parameters, docsField{p.Value.Name + " (" + p.Value.In + ")", typeOf(p.Value.Schema), prose(p.Value.Description), p.Value.Required})
			}
			if op.RequestBody != nil {
				o.Body = content(op.RequestBody.Value.Content)
			}
			for _, status := range sortedKeys(op.Responses.Map()) {
				r := op.Responses.Map()[status].Value
				a := docsAnswer{status, prose(*r.Description), content(r.Content)}
				if status >= "400" {
					o.Errors = append(o.Errors, a)
				} else {
					o.Answers = append(o.Answers, a)
				}
			}
			o.Example = example(method, path, item, op)
			out = append(out, o)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		return a.Path < b.Path || a.Path == b.Path && methodOrder(a.Method) < methodOrder(b.Method)
	})
	return out
}

// prose returns a paragraph as HTML, with `code` marked up.
func prose(s string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(s, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}

func methodOrder(m string) int {
	return slices.Index([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, m)
}

func roleWords(op string) string {
	if r := auth.Rights[op]; r != auth.Everybody {
		return r.Words()
	}
	return "no key needed"
}

func content(c openapi3.Content) template.HTML {
	for _, form := range []string{"application/json", api.ProblemType} {
		if json := c[form]; json != nil {
			return typeOf(json.Schema)
		}
	}
	return template.HTML(template.HTMLEscapeString(strings.Join(sortedKeys(c), ", ")))
}

func fields(s *openapi3.Schema) []docsField {
	var out []docsField
	for _, name := range sortedKeys(s.Properties) {
		p := s.Properties[name]
		about := p.Value.Description
		if p.Ref != "" {
			about = ""
		}
		out = append(out, docsField{name, typeOf(p), prose(about), slices.Contains(s.Required, name)})
	}
	return out
}

// typeOf describes a schema in words, with links to named schemas.
func typeOf(s *openapi3.SchemaRef) template.HTML {
	if s == nil {
		return ""
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		name = template.HTMLEscapeString(name)
		return template.HTML(`<a href="#schema-` + name + `">` + name + `</a>`)
	}
	v := s.Value
	switch {
	case v.Type.Is("array"):
		return "list of " + typeOf(v.Items)
	case len(v.Enum) > 0:
		words := make([]string, len(v.Enum))
		for i, e := range v.Enum {
			words[i] = fmt.Sprint(e)
		}
		return template.HTML(template.HTMLEscapeString(strings.Join(words, " | ")))
	case v.Type.Is("object") && v.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(v.AdditionalProperties.Schema)
	}
	words := strings.Join(v.Type.Slice(), " ")
	if v.Format != "" {
		words += " (" + v.Format + ")"
	}
	return template.HTML(template.HTMLEscapeString(words))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
