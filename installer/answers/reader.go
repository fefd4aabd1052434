package answers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxBytes of an answer file.
const MaxBytes = 256 << 10

// reader walks the YAML tree and collects every mistake instead of stopping
// at the first: whoever writes the file wants to see all of them at once.
type reader struct{ mistakes Mistakes }

func (r *reader) wrong(n *yaml.Node, field, instead, reason string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{n.Line, n.Column, field, fmt.Sprintf(reason, args...), instead})
}

// field of a mapping.
type field struct {
	name     string
	required string // what to write when it is missing; empty: it may be
	read     func(n *yaml.Node, path string)
}

// mapping reads the fields of one; false when n is something else.
func (r *reader) mapping(n *yaml.Node, path string, fields ...field) bool {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, path, "write fields below it: "+names(fields), "is no mapping of fields")
		return false
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, clip(key.Value))
		f, ok := find(fields, key.Value)
		if !ok {
			r.wrong(key, at, didYouMean(key.Value, fields), "there is no such field")
			continue
		}
		if line, twice := seen[f.name]; twice {
			r.wrong(key, at, "keep one of them", "is given twice (first in line %d)", line)
			continue
		}
		seen[f.name] = key.Line
		if value.Kind == yaml.AliasNode {
			r.wrong(value, at, "write the value out", "refers to another place in the file")
			continue
		}
		f.read(value, at)
	}
	for _, f := range fields {
		if _, ok := seen[f.name]; !ok && f.required != "" {
			r.wrong(n, join(path, f.name), "write "+f.required, "is missing")
		}
	}
	return true
}

func find(fields []field, name string) (field, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

func names(fields []field) string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.name
	}
	return strings.Join(all, ", ")
}

func didYouMean(wrote string, fields []field) string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.name
	}
	if best, ok := closest(wrote, all); ok {
		return "did you mean " + best + "?"
	}
	return "the fields here are " + names(fields)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// text of a scalar that is not empty.
func (r *reader) text(n *yaml.Node, path, instead string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		r.wrong(n, path, instead, "is no text")
		return "", false
	}
	return n.Value, true
}

// flag is true or false.
func (r *reader) flag(n *yaml.Node, path string) bool {
	var b bool
	if n.Kind != yaml.ScalarNode || n.Decode(&b) != nil {
		r.wrong(n, path, "write true or false", "%q is neither true nor false", clip(n.Value))
	}
	return b
}

// each item of a list; one scalar stands for a list of one.
func (r *reader) each(n *yaml.Node, path string, most int, read func(n *yaml.Node, path string)) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		read(n, path)
		return
	case n.Kind != yaml.SequenceNode:
		r.wrong(n, path, "write [one, two] or a line with '- ' for each", "is no list")
		return
	case len(n.Content) > most:
		r.wrong(n, path, fmt.Sprintf("keep at most %d", most), "has %d entries", len(n.Content))
		return
	}
	for i, item := range n.Content {
		read(item, fmt.Sprintf("%s[%d]", path, i))
	}
}

var (
	yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)
	yamlHint = "check indentation (spaces, no tabs), the colon after each name, and quotes around text with : or #"
)

// document of the file, or the mistake that keeps it from being one.
func document(data []byte) (*yaml.Node, Mistakes) {
	one := func(line int, reason, instead string) Mistakes {
		return Mistakes{{Line: line, Column: 1, Reason: reason, Instead: instead}}
	}
	if len(data) > MaxBytes {
		return nil, one(1, fmt.Sprintf("the file has %d bytes", len(data)), fmt.Sprintf("an answer file has at most %d KiB", MaxBytes>>10))
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, one(1, "the file is empty", "start with disk:, erase:, hostname: …")
	case err != nil:
		line, text := 1, err.Error()
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(m[1])
			text = strings.TrimPrefix(text, m[0])
		}
		return nil, one(max(line, 1), "is no YAML: "+strings.TrimPrefix(text, "yaml: "), yamlHint)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, one(max(more.Line, 1), "a second document follows", "keep one; remove what comes after ---")
	}
	return doc.Content[0], nil
}
