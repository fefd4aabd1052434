// Package scim implements the messages of SCIM 2.0 (RFC 7643 and RFC 7644) that
// directories provision users and groups with: resources, filters, patches and errors. It
// decodes what clients send, which may be hostile, and reaches no store.
//
// It supports what the clients that organizations use (Okta, Microsoft Entra ID) send,
// including their deviations from the RFCs; docs/decisions/0075 has the reasons.
package scim

// The URIs of schemas and messages.
const (
	UserSchema    = "urn:ietf:params:scim:schemas:core:2.0:User"
	GroupSchema   = "urn:ietf:params:scim:schemas:core:2.0:Group"
	listSchema    = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
	patchSchema   = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
	errorSchema   = "urn:ietf:params:scim:api:messages:2.0:Error"
	configSchema  = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
	typeSchema    = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
	schemaSchema  = "urn:ietf:params:scim:schemas:core:2.0:Schema"
	MediaType     = "application/scim+json"
	MaxPage       = 200 // most resources of a list's page
	maxOperations = 256
)
