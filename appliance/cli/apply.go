package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// document is one object of a file. It has the fields that users write and those that `get -o
// yaml` prints; apply ignores the ones that the server sets.
type document struct {
	Kind       api.Kind        `json:"kind"`
	Meta       api.Meta        `json:"meta"`
	Spec       json.RawMessage `json:"spec"`
	Secret     string          `json:"secret"`
	Assignment json.RawMessage `json:"assignment"`
	Status     json.RawMessage `json:"status"`
}

const maxFile = 8 << 20

func (a *App) applyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Create or update the objects described in a file", Args: cobra.NoArgs,
		Long: "Reads YAML documents with kind, meta (name, organization, project, labels) and spec. Creates each object, or\n" +
			"updates the one with that name. Applying a file again changes nothing. Fields whose names end in Bytes accept\n" +
			"sizes, e.g. 1GiB. -f - reads standard input. With --dry-run each document is checked by itself, against what\n" +
			"exists: one that refers to an object of an earlier document is refused.",
	}
	files := cmd.Flags().StringArrayP("file", "f", nil, "file of documents, repeatable")
	var w waiting
	addWaitFlags(cmd, &w)
	dry := dryRunFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(*files) == 0 {
			return usagef("-f FILE is required")
		}
		for _, file := range *files {
			docs, err := a.readDocuments(file)
			if err != nil {
				return err
			}
			for i, d := range docs {
				if err := a.applyOne(cmd.Context(), d, w, *dry); err != nil {
					applied := i
					if *dry {
						applied = 0
					}
					return placed{fmt.Sprintf("%s, document %d (%s %s)", fileName(file), i+1, d.Kind, d.Meta.Name), applied, err}
				}
			}
		}
		if *dry {
			fmt.Fprintln(a.Err, "dry run: nothing was changed")
		}
		return nil
	}
	return cmd
}

// placed is an error with the document that caused it. The documents before it have been
// applied.
type placed struct {
	where   string
	applied int
	err     error
}

func (p placed) Error() string { return p.where + ": " + p.err.Error() }
func (p placed) Unwrap() error { return p.err }

func fileName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

func (a *App) applyOne(ctx context.Context, d document, w waiting, dry bool) error {
	for _, k := range a.kinds() {
		if k.name() == d.Kind {
			return k.apply(ctx, d, w, dry)
		}
	}
	return api.Errorf(api.CodeInvalid, "unknown kind %q", d.Kind).At("kind")
}

func (a *App) readDocuments(file string) ([]document, error) {
	in := a.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxFile {
		return nil, fmt.Errorf("%s is larger than %s", fileName(file), formatSize(maxFile))
	}
	var docs []document
	for i, part := range splitDocuments(string(raw)) {
		d, err := parseDocument(part)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s, document %d: %w", fileName(file), i+1, err), "kind, meta and spec; GET /openapi.yaml lists the fields"}
		}
		docs = append(docs, d)
	}
	return docs, nil
}

// splitDocuments splits s at lines "---" and drops parts without content.
func splitDocuments(s string) []string {
	var parts []string
	var part strings.Builder
	keep := func() {
		if hasContent(part.String()) {
			parts = append(parts, part.String())
		}
		part.Reset()
	}
	for line := range strings.Lines(s) {
		if strings.TrimRight(line, " \r\n") == "---" {
			keep()
			continue
		}
		part.WriteString(line)
	}
	keep()
	return parts
}

func hasContent(s string) bool {
	for line := range strings.Lines(s) {
		if t := strings.TrimSpace(line); t != "" && !strings.HasPrefix(t, "#") {
			return true
		}
	}
	return false
}

func parseDocument(text string) (document, error) {
	var d document
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return d, fmt.Errorf("parse YAML: %w", err)
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return d, fmt.Errorf("decode document: %w", err)
	}
	if tree, err = withSizes("", tree); err != nil {
		return d, err
	}
	if raw, err = json.Marshal(tree); err != nil {
		return d, err
	}
	return d, decodeStrict(raw, &d)
}

func decodeStrict(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return fmt.Errorf("%s: got a %s, want %s", cmp.Or(wrong.Field, "document"), wrong.Value, typeWords(wrong.Type))
		}
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// typeWords describes a Go type to users who write YAML.
func typeWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int64, reflect.Int32, reflect.Int:
		return "a whole number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// withSizes replaces strings under names that end in Bytes by numbers.
func withSizes(name string, v any) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		if strings.HasSuffix(name, "Bytes") {
			return parseSize(v)
		}
	case map[string]any:
		for key, x := range v {
			if v[key], err = withSizes(key, x); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	case []any:
		for i, x := range v {
			if v[i], err = withSizes("", x); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// apply creates the object, or updates the one with that name in that scope.
func (k *kind[T]) apply(ctx context.Context, d document, w waiting, dry bool) error {
	if !k.written() {
		return api.Errorf(api.CodeInvalid, "objects of kind %s cannot be applied", d.Kind).At("kind")
	}
	q := k.query()
	q.Organization, q.Project = first(d.Meta.Organization, q.Organization), first(d.Meta.Project, q.Project)
	if d.Kind.Info().Scope < api.OfProject {
		q.Project = ""
	}
	if d.Meta.Project != "" && d.Meta.Organization == "" && q.Organization != k.app.config.Organization {
		q.Organization = ""
	}
	var want T
	spec, err := json.Marshal(map[string]any{"kind": d.Kind, "meta": api.Meta{}, "spec": d.Spec})
	if err != nil {
		return err
	}
	if err := decodeStrict(spec, &want); err != nil {
		return api.Errorf(api.CodeInvalid, "%s", err)
	}
	*api.MetaOf(&want) = api.Meta{Name: d.Meta.Name, Organization: q.Organization, Project: q.Project, Labels: d.Meta.Labels}
	objects := k.objects()
	if dry {
		objects, w = objects.DryRun(), waiting{}
	}
	applied, err := objects.Apply(ctx, want)
	if err != nil {
		return err
	}
	k.printApplied(d.Meta.Name, applied, dry)
	_, err = k.await(ctx, applied.Object, w)
	return err
}

// printApplied prints what apply did, or with dry what it would have done.
func (k *kind[T]) printApplied(name string, a client.Applied[T], dry bool) {
	label, would := k.noun+" "+name, ""
	if dry {
		would = "would be "
	}
	switch a.Result {
	case client.ApplyCreated:
		if dry {
			fmt.Fprintf(k.app.Out, "%s would be created\n", label)
		} else {
			fmt.Fprintf(k.app.Out, "%s created (%s)\n", label, api.MetaOf(&a.Object).ID)
		}
		if k.made != nil && (!dry || !k.secret) {
			k.made(a.Object)
		}
	case client.ApplyUnchanged:
		fmt.Fprintf(k.app.Out, "%s unchanged\n", label)
	case client.ApplyUpdated:
		fmt.Fprintf(k.app.Out, "%s %schanged\n", label, would)
		for _, line := range differences(a.Before, a.Object) {
			fmt.Fprintf(k.app.Out, "  %s\n", printable(line))
		}
	}
}

// differences lists the changes of specs and labels, one line each.
func differences(old, next any) []string {
	a, b := map[string]string{}, map[string]string{}
	flatten(old, a)
	flatten(next, b)
	var lines []string
	for path, v := range b {
		if w, ok := a[path]; !ok {
			lines = append(lines, path+": "+v)
		} else if v != w {
			lines = append(lines, path+": "+w+" → "+v)
		}
	}
	for path, w := range a {
		if _, ok := b[path]; !ok {
			lines = append(lines, path+": "+w+" → none")
		}
	}
	sort.Strings(lines)
	return lines
}

func flatten(o any, into map[string]string) {
	raw, err := json.Marshal(o)
	if err != nil {
		return
	}
	var tree struct {
		Meta struct {
			Labels map[string]any `json:"labels"`
		} `json:"meta"`
		Spec map[string]any `json:"spec"`
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&tree) != nil {
		return
	}
	walk("meta.labels", tree.Meta.Labels, into)
	walk("spec", tree.Spec, into)
}

func walk(path string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			walk(path+"."+k, x, into)
		}
	case []any:
		for i, x := range v {
			walk(fmt.Sprintf("%s[%d]", path, i), x, into)
		}
	default:
		into[path] = fmt.Sprint(v)
	}
}
