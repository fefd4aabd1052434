// Package strictyaml reads YAML files that people write. It collects every mistake of a
// file, each with its line, its column, its field and what to write instead, and refuses
// what a reader would pass over: unknown fields, fields that are given twice, aliases.
package strictyaml

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

// MaxBytes of a file.
const MaxBytes = 256 << 10

// Reader walks the YAML tree and collects every mistake instead of stopping
// at the first: whoever writes the file wants to see all of them at once.
type Reader struct {
	mistakes Mistakes
	places   map[string]*yaml.Node // by field path: where a check of the whole finds it
}

// Wrong adds a mistake in a field, at a node.
func (r *Reader) Wrong(n *yaml.Node, field, instead, reason string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{n.Line, n.Column, field, fmt.Sprintf(reason, args...), instead})
}

// Field of a mapping.
type Field struct {
	Name     string
	Required string // what to write when it is missing; empty: it may be
	Read     func(n *yaml.Node, path string)
}

// Mapping reads the fields of one; false when n is something else.
func (r *Reader) Mapping(n *yaml.Node, path string, fields ...Field) bool {
	if n.Kind != yaml.MappingNode {
		r.Wrong(n, path, "write fields below it: "+names(fields), "is no mapping of fields")
		return false
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := Join(path, Clip(key.Value))
		f, ok := find(fields, key.Value)
		if !ok {
			r.Wrong(key, at, didYouMean(key.Value, fields), "there is no such field")
			continue
		}
		if line, twice := seen[f.Name]; twice {
			r.Wrong(key, at, "keep one of them", "is given twice (first in line %d)", line)
			continue
		}
		seen[f.Name] = key.Line
		if value.Kind == yaml.AliasNode {
			r.Wrong(value, at, "write the value out", "refers to another place in the file")
			continue
		}
		r.note(at, value)
		f.Read(value, at)
	}
	for _, f := range fields {
		if _, ok := seen[f.Name]; !ok && f.Required != "" {
			r.Wrong(n, Join(path, f.Name), "write "+f.Required, "is missing")
		}
	}
	return true
}

func find(fields []Field, name string) (Field, bool) {
	for _, f := range fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

func names(fields []Field) string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.Name
	}
	return strings.Join(all, ", ")
}

func didYouMean(wrote string, fields []Field) string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.Name
	}
	if best, ok := closest(wrote, all); ok {
		return "did you mean " + best + "?"
	}
	return "the fields here are " + names(fields)
}

// Join a field to the path of what it is in.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Text of a scalar that is not empty.
func (r *Reader) Text(n *yaml.Node, path, instead string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		r.Wrong(n, path, instead, "is no text")
		return "", false
	}
	return n.Value, true
}

// Flag is true or false.
func (r *Reader) Flag(n *yaml.Node, path string) bool {
	var b bool
	if n.Kind != yaml.ScalarNode || n.Decode(&b) != nil {
		r.Wrong(n, path, "write true or false", "%q is neither true nor false", Clip(n.Value))
	}
	return b
}

// Each item of a list; one scalar stands for a list of one.
func (r *Reader) Each(n *yaml.Node, path string, most int, read func(n *yaml.Node, path string)) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		read(n, path)
		return
	case n.Kind != yaml.SequenceNode:
		r.Wrong(n, path, "write [one, two] or a line with '- ' for each", "is no list")
		return
	case len(n.Content) > most:
		r.Wrong(n, path, fmt.Sprintf("keep at most %d", most), "has %d entries", len(n.Content))
		return
	}
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		r.note(at, item)
		read(item, at)
	}
}

var (
	yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)
	yamlHint = "check indentation (spaces, no tabs), the colon after each name, and quotes around text with : or #"
)

// Document of the file, or the mistake that keeps it from being one. begin is what to
// write into an empty one.
func Document(data []byte, begin string) (*yaml.Node, Mistakes) {
	one := func(line int, reason, instead string) Mistakes {
		return Mistakes{{Line: line, Column: 1, Reason: reason, Instead: instead}}
	}
	if len(data) > MaxBytes {
		return nil, one(1, fmt.Sprintf("the file has %d bytes", len(data)), fmt.Sprintf("it may have at most %d KiB", MaxBytes>>10))
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, one(1, "the file is empty", begin)
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

// note where a field is.
func (r *Reader) note(path string, n *yaml.Node) {
	if r.places == nil {
		r.places = map[string]*yaml.Node{}
	}
	r.places[path] = n
}

// At adds a mistake that a check of the whole has found, at the place of the field or of
// what it would be in.
func (r *Reader) At(root *yaml.Node, path, instead, reason string) {
	n, in := root, path
	for in != "" {
		if at := r.places[in]; at != nil {
			n = at
			break
		}
		in = in[:max(strings.LastIndexAny(in, ".["), 0)]
	}
	r.mistakes = append(r.mistakes, Mistake{n.Line, n.Column, path, reason, instead})
}

// Mistakes that were found, in the order of the file.
func (r *Reader) Mistakes() Mistakes { return r.mistakes.sorted() }
