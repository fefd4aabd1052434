package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/rawjson"
)

// decodeObject decodes a stored object. It copies what it keeps: raw is bbolt's. Lists and
// the planner decode thousands of objects at a time, so that what EncodeJSON writes for
// ordinary objects is read here in one pass, and only the rest by encoding/json, with the
// same result.
func decodeObject(raw []byte) (o api.Object, err error) {
	if plainObject(bytes.Clone(raw), &o) {
		return o, nil
	}
	o = api.Object{}
	if err := json.Unmarshal(raw, &o); err != nil {
		return o, fmt.Errorf("decode stored object: %w", err)
	}
	return o, nil
}

// plainObject decodes an object, which keeps parts of raw; false if it has something that only encoding/json decodes.
func plainObject(raw []byte, o *api.Object) bool {
	return rawjson.Members(raw, func(name, value []byte) (ok bool) {
		switch string(name) {
		case "kind":
			var kind string
			kind, ok = rawjson.Text(value)
			o.Kind = api.Kind(kind)
		case "meta":
			ok = rawjson.Members(value, func(name, value []byte) bool { return plainMeta(&o.Meta, name, value) })
		case "spec":
			o.Spec, ok = value, true
		case "assignment":
			o.Assignment, ok = value, true
		case "status":
			o.Status, ok = value, true
		case "claims":
			ok = json.Unmarshal(value, &o.Claims) == nil
		case "uses":
			o.Uses, ok = plainAmounts(value)
		case "limits":
			o.Limits, ok = plainAmounts(value)
		}
		return ok
	})
}

func plainMeta(m *api.Meta, name, value []byte) (ok bool) {
	switch string(name) {
	case "id":
		m.ID, ok = rawjson.Text(value)
	case "name":
		m.Name, ok = rawjson.Text(value)
	case "organization":
		m.Organization, ok = rawjson.Text(value)
	case "project":
		m.Project, ok = rawjson.Text(value)
	case "generation":
		m.Generation, ok = plainInt(value)
	case "revision":
		m.Revision, ok = plainInt(value)
	case "createdAt":
		m.CreatedAt, ok = plainTime(value)
	case "updatedAt":
		m.UpdatedAt, ok = plainTime(value)
	case "deletedAt":
		m.DeletedAt = new(time.Time)
		*m.DeletedAt, ok = plainTime(value)
	case "labels":
		ok = json.Unmarshal(value, &m.Labels) == nil
	case "finalizers":
		ok = json.Unmarshal(value, &m.Finalizers) == nil
	}
	return ok
}

func plainInt(value []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil
}

func plainTime(value []byte) (t time.Time, ok bool) {
	return t, len(value) > 2 && value[0] == '"' && t.UnmarshalText(value[1:len(value)-1]) == nil
}

func plainAmounts(value []byte) (api.Amounts, bool) {
	out := api.Amounts{}
	ok := rawjson.Members(value, func(name, value []byte) bool {
		n, ok := plainInt(value)
		out[string(name)] = n
		return ok && !bytes.Contains(name, []byte{'\\'})
	})
	return out, ok
}
