package scim

// Config returns the service provider configuration (RFC 7643, section 5).
func Config(base string) map[string]any {
	no := map[string]any{"supported": false}
	return map[string]any{"schemas": []string{configSchema}, "documentationUri": "https://github.com/basalt-gpu/basalt/blob/main/docs/single-sign-on.md",
		"patch": map[string]any{"supported": true}, "bulk": map[string]any{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter": map[string]any{"supported": true, "maxResults": MaxPage}, "changePassword": no, "sort": no, "etag": no,
		"authenticationSchemes": []map[string]any{{"type": "oauthbearertoken", "name": "API key", "description": "An API key of the organization with scope scim:write", "primary": true}},
		"meta":                  map[string]any{"resourceType": "ServiceProviderConfig", "location": base + "/ServiceProviderConfig"}}
}

// ResourceTypes returns the resource types (RFC 7643, section 6).
func ResourceTypes(base string) []map[string]any {
	one := func(name, endpoint, schema string) map[string]any {
		return map[string]any{"schemas": []string{typeSchema}, "id": name, "name": name, "endpoint": endpoint, "schema": schema,
			"meta": map[string]any{"resourceType": "ResourceType", "location": base + "/ResourceTypes/" + name}}
	}
	return []map[string]any{one("User", "/Users", UserSchema), one("Group", "/Groups", GroupSchema)}
}

// Schemas returns the schemas (RFC 7643, section 7), with the attributes that are stored.
func Schemas(base string) []map[string]any {
	one := func(id, name string, attributes ...map[string]any) map[string]any {
		return map[string]any{"schemas": []string{schemaSchema}, "id": id, "name": name, "attributes": attributes,
			"meta": map[string]any{"resourceType": "Schema", "location": base + "/Schemas/" + id}}
	}
	userName := attribute("userName", "string", "An e-mail address, unique in the organization.")
	userName["required"], userName["uniqueness"] = true, "server"
	displayName := attribute("displayName", "string", "Unique among the provisioned groups of the organization.")
	displayName["required"], displayName["uniqueness"] = true, "server"
	emails := attribute("emails", "complex", "The address of userName.", attribute("value", "string", "An e-mail address."), attribute("type", "string", "work"), attribute("primary", "boolean", "true"))
	emails["multiValued"], emails["mutability"] = true, "readOnly"
	members := attribute("members", "complex", "Provisioned users of the organization.", attribute("value", "string", "The ID of a user."))
	members["multiValued"] = true
	externalID := attribute("externalId", "string", "The ID in the directory.")
	externalID["caseExact"] = true
	return []map[string]any{
		one(UserSchema, "User", userName, externalID, attribute("displayName", "string", "The name that is shown."),
			attribute("name", "complex", "The name of the person.", attribute("givenName", "string", "Given name."), attribute("familyName", "string", "Family name.")),
			attribute("active", "boolean", "Whether the user may sign in."), emails),
		one(GroupSchema, "Group", displayName, externalID, members),
	}
}

func attribute(name, typ, description string, sub ...map[string]any) map[string]any {
	a := map[string]any{"name": name, "type": typ, "description": description, "multiValued": false, "required": false, "caseExact": false,
		"mutability": "readWrite", "returned": "default", "uniqueness": "none"}
	if len(sub) > 0 {
		a["subAttributes"] = sub
	}
	return a
}
