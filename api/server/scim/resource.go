package scim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Meta is what both kinds of resources have. Clients set ExternalID only.
type Meta struct {
	ID         string
	ExternalID string
	Created    time.Time
	Location   string
}

// User is a user in the form that a directory sees.
type User struct {
	Meta
	UserName    string // an e-mail address
	DisplayName string
	GivenName   string
	FamilyName  string
	Active      bool
}

// Group is a group in the form that a directory sees.
type Group struct {
	Meta
	DisplayName string
	Members     []string // IDs of users, sorted
}

// resource is a User or a Group.
type resource interface {
	// set sets an attribute, or one of its sub-attributes, as PUT and PATCH do. Names are
	// in lower case.
	set(attribute, sub string, value any) error
	// attribute returns the values of an attribute for filters; ok is false if the
	// resource has no such attribute.
	attribute(name string) (values, bool)
	document() map[string]any
}

// decode decodes a JSON object.
func decode(raw []byte) (map[string]any, error) {
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		return nil, invalid(InvalidSyntax, "the body is not a JSON object")
	}
	return m, nil
}

// setAll sets the attributes of a body. Attributes that the resource does not have are
// ignored, as directories send more than they are asked for.
func setAll(r resource, raw []byte) error {
	m, err := decode(raw)
	if err != nil {
		return err
	}
	for name, value := range m {
		attribute := strings.ToLower(name)
		if _, ok := r.attribute(attribute); !ok && attribute != "name" {
			continue
		}
		if err := r.set(attribute, "", value); err != nil {
			return err
		}
	}
	return nil
}

// ReadUser returns the user of a body of POST or PUT; what it does not contain is as in
// old for Active, and empty otherwise.
func ReadUser(raw []byte, old User) (User, error) {
	u := User{Meta: Meta{ID: old.ID, Created: old.Created, Location: old.Location}, Active: old.Active}
	if err := setAll(&u, raw); err != nil {
		return u, err
	}
	if u.UserName == "" {
		return u, invalid(InvalidValue, "userName is required")
	}
	return u, nil
}

// ReadGroup returns the group of a body of POST or PUT.
func ReadGroup(raw []byte, old Group) (Group, error) {
	g := Group{Meta: Meta{ID: old.ID, Created: old.Created, Location: old.Location}}
	if err := setAll(&g, raw); err != nil {
		return g, err
	}
	if g.DisplayName == "" {
		return g, invalid(InvalidValue, "displayName is required")
	}
	return g, nil
}

// text returns a string value; null is empty.
func text(attribute string, value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return strings.TrimSpace(v), nil
	}
	return "", invalid(InvalidValue, "%s must be a string", attribute)
}

// boolean returns a Boolean value. Entra sends "True" and "False" as strings.
func boolean(attribute string, value any) (bool, error) {
	switch v := value.(type) {
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(v) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, invalid(InvalidValue, "%s must be true or false", attribute)
}

// otherAttributes are the attributes of users that Basalt accepts and does not store. The
// only address of a user is its userName.
var otherAttributes = []string{"schemas", "id", "meta", "emails", "password", "nickname", "profileurl", "title", "usertype", "preferredlanguage", "locale", "timezone",
	"phonenumbers", "ims", "photos", "addresses", "groups", "entitlements", "roles", "x509certificates"}

func (u *User) set(attribute, sub string, value any) (err error) {
	switch attribute {
	case "username":
		if u.UserName, err = text("userName", value); err == nil && u.UserName == "" {
			err = invalid(InvalidValue, "userName must not be empty")
		}
	case "displayname":
		u.DisplayName, err = text("displayName", value)
	case "externalid":
		u.ExternalID, err = text("externalId", value)
	case "active":
		u.Active, err = boolean("active", value)
	case "name":
		return u.setName(sub, value)
	default:
		if !slices.Contains(otherAttributes, attribute) {
			return invalid(InvalidPath, "users have no attribute %.64q", attribute)
		}
	}
	return err
}

func (u *User) setName(sub string, value any) (err error) {
	switch sub {
	case "givenname":
		u.GivenName, err = text("name.givenName", value)
	case "familyname":
		u.FamilyName, err = text("name.familyName", value)
	case "formatted", "middlename", "honorificprefix", "honorificsuffix":
	case "":
		parts, ok := value.(map[string]any)
		if !ok && value != nil {
			return invalid(InvalidValue, "name must be an object")
		}
		if value == nil {
			u.GivenName, u.FamilyName = "", ""
		}
		for part, v := range parts {
			if err := u.setName(strings.ToLower(part), v); err != nil {
				return err
			}
		}
	default:
		return invalid(InvalidPath, "name has no attribute %.64q", sub)
	}
	return err
}

func (u *User) attribute(name string) (values, bool) {
	switch name {
	case "id":
		return values{exact: true, all: one(u.ID)}, true
	case "externalid":
		return values{exact: true, all: one(u.ExternalID)}, true
	case "username", "emails", "emails.value":
		return values{all: one(u.UserName)}, true
	case "emails.type":
		return values{all: one("work")}, true
	case "emails.primary":
		return values{all: one("true")}, true
	case "displayname":
		return values{all: one(u.DisplayName)}, true
	case "name.givenname":
		return values{all: one(u.GivenName)}, true
	case "name.familyname":
		return values{all: one(u.FamilyName)}, true
	case "active":
		if u.Active {
			return values{all: one("true")}, true
		}
		return values{all: one("false")}, true
	}
	return values{}, slices.Contains(otherAttributes, name)
}

func (u *User) document() map[string]any {
	m := u.base(UserSchema, "User")
	m["userName"], m["active"] = u.UserName, u.Active
	m["emails"] = []map[string]any{{"value": u.UserName, "type": "work", "primary": true}}
	if u.DisplayName != "" {
		m["displayName"] = u.DisplayName
	}
	name := map[string]any{}
	for key, v := range map[string]string{"givenName": u.GivenName, "familyName": u.FamilyName, "formatted": strings.TrimSpace(u.GivenName + " " + u.FamilyName)} {
		if v != "" {
			name[key] = v
		}
	}
	if len(name) > 0 {
		m["name"] = name
	}
	return m
}

func (m Meta) base(schema, typ string) map[string]any {
	d := map[string]any{"schemas": []string{schema}, "id": m.ID,
		"meta": map[string]any{"resourceType": typ, "created": m.Created.UTC().Format(time.RFC3339), "location": m.Location}}
	if m.ExternalID != "" {
		d["externalId"] = m.ExternalID
	}
	return d
}

func (g *Group) set(attribute, sub string, value any) (err error) {
	switch attribute {
	case "displayname":
		if g.DisplayName, err = text("displayName", value); err == nil && g.DisplayName == "" {
			err = invalid(InvalidValue, "displayName must not be empty")
		}
	case "externalid":
		g.ExternalID, err = text("externalId", value)
	case "members":
		if sub != "" {
			return invalid(InvalidPath, "members cannot be changed in part")
		}
		g.Members, err = memberIDs(value)
	case "schemas", "id", "meta":
	default:
		return invalid(InvalidPath, "groups have no attribute %.64q", attribute)
	}
	return err
}

// memberIDs returns the IDs of a list of members, or of one; sorted, each once.
func memberIDs(value any) ([]string, error) {
	bad := invalid(InvalidValue, `members must be a list of objects with a "value", the ID of a user`)
	list, ok := value.([]any)
	if single, isOne := value.(map[string]any); isOne {
		list, ok = []any{single}, true
	}
	if !ok && value != nil {
		return nil, bad
	}
	var out []string
	for _, item := range list {
		member, _ := item.(map[string]any)
		id, _ := member["value"].(string)
		if id == "" || len(id) > 256 {
			return nil, bad
		}
		out = append(out, id)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (g *Group) attribute(name string) (values, bool) {
	switch name {
	case "id":
		return values{exact: true, all: one(g.ID)}, true
	case "externalid":
		return values{exact: true, all: one(g.ExternalID)}, true
	case "displayname":
		return values{all: one(g.DisplayName)}, true
	case "members", "members.value":
		return values{exact: true, all: g.Members}, true
	}
	return values{}, name == "schemas" || name == "meta"
}

func (g *Group) document() map[string]any {
	m := g.base(GroupSchema, "Group")
	members := []map[string]any{}
	for _, id := range g.Members {
		members = append(members, map[string]any{"value": id, "type": "User"})
	}
	m["displayName"], m["members"] = g.DisplayName, members
	return m
}

func one(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
