package api

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api/rawjson"
)

// A field is what lists can be sorted by and filtered by with a field selector: a
// scalar of an object, given by its path, or one of the names that all kinds have. Only
// the fields in the row of a kind are allowed, since the sort order of a secret would
// reveal it.

// fieldsOfAll are the fields of every kind.
var fieldsOfAll = []string{"id", "name", "createdAt", "organization", "project"}

// Fields returns the fields that lists of the kind can be sorted and filtered by.
func (k Kind) Fields() []string { return slices.Concat(fieldsOfAll, k.Info().fields) }

// StateOf returns an object's state in one word: for an instance the phase that
// InstancePhaseOf returns; for others Deleting if deletedAt is set, otherwise the
// phase, or Pending if it has none yet.
func StateOf(o Object) string {
	if o.Kind == KindInstance {
		return string(instanceState(o))
	}
	if o.Meta.DeletedAt != nil {
		return string(InstanceDeleting)
	}
	for _, part := range []json.RawMessage{o.Status, o.Assignment} { // the planner writes the phase of migrations
		if phase, ok := scalarAt(part, "phase").(string); ok {
			return phase
		}
	}
	return string(InstancePending)
}

// instanceState is InstancePhaseOf, but decodes only the fields that it depends on,
// since lists call it for every instance. Fields that cannot be decoded count as empty.
func instanceState(o Object) InstancePhase {
	text := func(part json.RawMessage, name string) string { return textOf(rawjson.Member(part, name)) }
	epoch := func(part json.RawMessage) int64 {
		n, _ := strconv.ParseInt(string(rawjson.Member(part, "epoch")), 10, 64)
		return n
	}
	return InstancePhaseOf(Instance{Meta: o.Meta,
		Assignment: InstanceAssignment{Node: NodeID(text(o.Assignment, "node")), Epoch: epoch(o.Assignment), NodeLost: string(rawjson.Member(o.Assignment, "nodeLost")) == "true"},
		Status:     InstanceStatus{Node: NodeID(text(o.Status, "node")), Epoch: epoch(o.Status), Phase: InstancePhase(text(o.Status, "phase"))}})
}

// FieldOf returns the value of a field of the object's kind: a string, bool,
// json.Number or time.Time, or nil if the object does not have it.
func FieldOf(o Object, field string) any {
	switch field {
	case "id":
		return o.Meta.ID
	case "name":
		return o.Meta.Name
	case "createdAt":
		return o.Meta.CreatedAt
	case "organization":
		return given(o.Meta.Organization)
	case "project":
		return given(o.Meta.Project)
	case "state":
		return StateOf(o)
	}
	part, path, _ := strings.Cut(field, ".")
	raw := map[string]json.RawMessage{"spec": o.Spec, "assignment": o.Assignment, "status": o.Status}[part]
	v := scalarAt(raw, path)
	if s, ok := v.(string); ok && isTime(field) {
		if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return at
		}
	}
	return v
}

// isTime reports whether a field is a point in time, judging by its name.
func isTime(field string) bool {
	return strings.HasSuffix(field, "At") || field == "spec.from" || field == "spec.effectiveFrom" || field == "status.respondBy"
}

func given(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// scalarAt returns the string, bool or number at a path of a JSON object, or nil.
func scalarAt(raw json.RawMessage, path string) any {
	name, rest, deeper := strings.Cut(path, ".")
	at := rawjson.Member(raw, name)
	if deeper {
		return scalarAt(at, rest)
	}
	if len(at) == 0 {
		return nil
	}
	switch at[0] {
	case '"':
		if s := textOf(at); s != "" {
			return s
		}
	case 't', 'f':
		return at[0] == 't'
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return json.Number(at)
	}
	return nil
}

// textOf returns the text of an encoded string; empty if it is something else.
func textOf(value []byte) string {
	s, plain := rawjson.Text(value)
	if !plain && json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// fieldText returns a field's value as it is written in a selector; false if there is
// none.
func fieldText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		if v {
			return "true", true
		}
		return "false", true
	case json.Number:
		return v.String(), true
	case time.Time:
		return v.UTC().Format(time.RFC3339), true
	}
	return "", false
}

// FieldSelector selects objects of one kind by their fields.
type FieldSelector struct {
	terms  LabelSelector
	fields []string
}

// ParseFieldSelector parses conditions in the syntax of ParseLabelSelector, with fields
// of the kind as keys. An empty text selects all. Errors have code CodeInvalid.
func ParseFieldSelector(kind Kind, text string) (FieldSelector, error) {
	terms, err := parseSelector("fieldSelector", text)
	if err != nil {
		return FieldSelector{}, err
	}
	known, used := kind.Fields(), map[string]bool{}
	for _, t := range terms {
		if !slices.Contains(known, t.key) {
			return FieldSelector{}, invalid("fieldSelector", "%q is not a field of kind %s", clip(t.key), kind).WithHint("want one of %s", strings.Join(known, ", "))
		}
		used[t.key] = true
	}
	return FieldSelector{terms: terms, fields: slices.Sorted(maps.Keys(used))}, nil
}

// Matches reports whether an object meets all conditions. An object without the field
// meets field!=value.
func (s FieldSelector) Matches(o Object) bool {
	if len(s.terms) == 0 {
		return true
	}
	values := make(map[string]string, len(s.fields))
	for _, f := range s.fields {
		if text, ok := fieldText(FieldOf(o, f)); ok {
			values[f] = text
		}
	}
	return s.terms.Matches(values)
}

// Order is the order of a list: by a field, then by ID.
type Order struct {
	Field      string
	Descending bool
	// NameOf returns the name of an object, or its ID if it has none that may be known. If
	// set, fields that contain IDs of objects are in the order of their names.
	NameOf func(kind Kind, id string) string
}

// namedFields are the fields that contain the ID of another object, and its kind.
var namedFields = map[string]Kind{
	"organization": KindOrganization, "spec.organization": KindOrganization, "spec.parent": KindOrganization,
	"project": KindProject, "spec.project": KindProject,
	"assignment.node": KindNode, "status.node": KindNode,
	"assignment.gpu":       KindGPU,
	"spec.externalNetwork": KindExternalNetwork,
	"spec.floatingIP":      KindFloatingIP,
	"spec.image":           KindImage,
	"spec.instance":        KindInstance,
	"spec.network":         KindNetwork,
	"spec.priceBook":       KindPriceBook,
	"spec.volume":          KindVolume,
}

// valueOf returns the value of the order's field, with a name instead of an ID.
func (s Order) valueOf(o Object) any {
	v := FieldOf(o, s.Field)
	id, ok := v.(string)
	kind, named := namedFields[s.Field]
	if !ok || !named || s.NameOf == nil {
		return v
	}
	return s.NameOf(kind, id)
}

// ParseOrder parses a field of the kind, prefixed with "-" for descending order. An
// empty sort is the order by ID. Errors have code CodeInvalid.
func ParseOrder(kind Kind, sort ListSort) (Order, error) {
	field, descending := strings.CutPrefix(string(sort), "-")
	if field == "" && !descending {
		field = string(SortID)
	}
	if known := kind.Fields(); !slices.Contains(known, field) {
		return Order{}, invalid("sort", "%q is not a field of kind %s", clip(field), kind).
			WithHint("want one of %s, or one with - before it for the greatest first", strings.Join(known, ", "))
	}
	return Order{Field: field, Descending: descending}, nil
}

// mostKeyBytes limits the part of a value that determines the order, since page tokens
// contain it.
const mostKeyBytes = 128

// Key returns the object's sort key, whose bytes compare in ascending order: missing
// values first, then false and true, numbers, times, and text without regard to case.
func (s Order) Key(o Object) string {
	id := "\x00" + o.Meta.ID
	switch v := s.valueOf(o).(type) {
	case bool:
		if v {
			return "1t" + id
		}
		return "1f" + id
	case json.Number:
		return "2" + sortableNumber(v) + id
	case time.Time:
		return "3" + sortable(uint64(v.UnixNano())^1<<63) + id
	case string:
		text := strings.ToLower(strings.ReplaceAll(v, "\x00", ""))
		return "4" + text[:min(len(text), mostKeyBytes)] + id
	}
	return "0" + id
}

// sortableNumber returns bytes that compare in the order of the numbers. Whole numbers
// beyond 2^53 that a float64 cannot distinguish are ordered by ID.
func sortableNumber(n json.Number) string {
	f, err := n.Float64()
	if err != nil {
		f = 0
	}
	bits := math.Float64bits(f)
	if bits>>63 == 1 {
		return sortable(^bits)
	}
	return sortable(bits | 1<<63)
}

func sortable(n uint64) string {
	return string(binary.BigEndian.AppendUint64(nil, n))
}

// Before reports whether the key a comes before b.
func (s Order) Before(a, b string) bool {
	if s.Descending {
		return a > b
	}
	return a < b
}

// Token returns the token of a page that ends with the key.
func (s Order) Token(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// Place returns the key in a token; an empty token is the start of the list.
func (s Order) Place(token string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", Errorf(CodeInvalid, "is not a token from a previous page").At("continue")
	}
	return string(raw), nil
}
