// Package strictyaml reads YAML files that people write. It collects every mistake of a
// file with its line, its column, its field and a correction, and rejects what other
// readers ignore: unknown fields, repeated fields and aliases.
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

// MaxBytes is the maximum size of a file.
const MaxBytes = 256 << 10

// Reader walks the YAML tree and collects all mistakes instead of stopping at the
// first, so that the author of the file sees all of them at once.
type Reader struct {
	mistakes Mistakes
	places   map[string]*yaml.Node // the node of each field path, for At
}

// Wrong adds a mistake in a field at the position of n.
func (r *Reader) Wrong(n *yaml.Node, field, instead, reason string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{n.Line, n.Column, field, fmt.Sprintf(reason, args...), instead})
}

// Field describes a field of a mapping.
type Field struct {
	Name     string
	Required string // what to write if the field is missing; empty for an optional field
	Read     func(n *yaml.Node, path string)
}

// Mapping reads the fields of a mapping. It returns false if n is not a mapping.
func (r *Reader) Mapping(n *yaml.Node, path string, fields ...Field) bool {
	if n.Kind != yaml.MappingNode {
		r.Wrong(n, path, "write fields below it: "+names(fields), "is not a mapping of fields")
		return false
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := Join(path, Clip(key.Value))
		f, ok := find(fields, key.Value)
		if !ok {
			r.Wrong(key, at, didYouMean(key.Value, fields), "unknown field")
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

// Join appends the name of a field to the path of its parent.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Text returns the text of a scalar that is not empty.
func (r *Reader) Text(n *yaml.Node, path, instead string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		r.Wrong(n, path, instead, "is not a string")
		return "", false
	}
	return n.Value, true
}

// Flag returns the value of a Boolean field.
func (r *Reader) Flag(n *yaml.Node, path string) bool {
	var b bool
	if n.Kind != yaml.ScalarNode || n.Decode(&b) != nil {
		r.Wrong(n, path, "write true or false", "%q is neither true nor false", Clip(n.Value))
	}
	return b
}

// Each calls read for each item of a list. A scalar is treated as a list of one item.
func (r *Reader) Each(n *yaml.Node, path string, most int, read func(n *yaml.Node, path string)) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		read(n, path)
		return
	case n.Kind != yaml.SequenceNode:
		r.Wrong(n, path, "write [one, two] or a line with '- ' for each", "is not a list")
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

// Document returns the root node of the file, or the mistake that makes the file
// invalid. begin is the correction for an empty file.
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
		return nil, one(max(line, 1), "is not valid YAML: "+strings.TrimPrefix(text, "yaml: "), yamlHint)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, one(max(more.Line, 1), "a second document follows", "keep one; remove what comes after ---")
	}
	return doc.Content[0], nil
}

// note records the node of a field.
func (r *Reader) note(path string, n *yaml.Node) {
	if r.places == nil {
		r.places = map[string]*yaml.Node{}
	}
	r.places[path] = n
}

// At adds a mistake found by a check of the whole file, at the position of the field or
// of its closest existing parent.
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

// Mistakes returns the mistakes found so far in the order of their positions.
func (r *Reader) Mistakes() Mistakes { return r.mistakes.sorted() }
