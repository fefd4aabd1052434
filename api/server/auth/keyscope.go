package auth

import (
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// keyScopes are the scopes of an API key that allow operations; the operations that
// kinds have in common are added from api.Kinds. Operations in none of them need a key
// without scopes: whoever can create identity providers or join tokens, or read a whole
// backup, could gain all other rights. testdata/scopes.txt contains the same,
// maintained by hand.
var keyScopes = byOperation(map[string][]string{
	"alerts:read":         {"ListAlerts"},
	"api-keys:write":      {"RotateAPIKey"},
	"audit:read":          {"ListAuditEvents", "ListAccess"},
	"billing:read":        {"PreviewInvoice", "ExplainInvoice", "ExplainInvoiceLine", "GetLedger", "GetWallet", "GetTopUp", "GetAutoPay", "GetTaxSettings", "SimulatePriceBook", "QuotePriceBook", "GetRevenue", "ListCosts", "ListPriceBookVersions"},
	"billing:write":       {"RedeemVoucher", "IssueFinalInvoices", "SetDefaultCard", "UpdateTopUp", "PatchTopUp", "UpdateAutoPay", "PatchAutoPay", "UpdateTaxSettings", "PatchTaxSettings"},
	"gpu-pools:read":      {"GetGPUSamples", "ListGPUTenants", "GetCapacity"},
	"images:write":        {"PutImageContent"},
	"instances:read":      {"GetInstanceConsoleLog", "GetInstanceSamples", "ListInstanceEvents", "GetInstanceConnection", "GetInstanceCost", "ListOffers"},
	"instances:write":     {"StartInstance", "StopInstance", "RestartInstance", "ReinstallInstance", "RescueInstance", "UnrescueInstance", "OpenInstanceConsole", "OpenInstanceScreen", "OpenInstanceShell", "OpenInstanceApp", "ExecInInstance"},
	"networks:read":       {"TraceNetwork"},
	"nodes:read":          {"GetNodeLeaks", "GetNodeSamples", "GetCluster"},
	"organizations:read":  {"GetOrganizationQuota", "GetOrganizationBranding", "GetOrganizationLogo", "GetOrganizationSignUpSettings"},
	"organizations:write": {"UpdateOrganizationBranding", "PatchOrganizationBranding", "PutOrganizationLogo", "DeleteOrganizationLogo", "UpdateOrganizationSignUpSettings", "PatchOrganizationSignUpSettings"},
	"projects:read":       {"GetProjectQuota"},
	"services:read":       {"ListServiceUsage"},
	"services:write":      {"SuspendService", "ResumeService", "SetServicePassword", "CreateServiceLoginLink"},
	"usage:read":          {"ListUsageRecords", "ListUsage", "ExportUsage"},
	"webhooks:read":       {"ListWebhookDeliveries"},
	"webhooks:write":      {"RotateWebhook", "ReplayWebhook", "TestWebhook"},
})

// unscoped are the operations for keys of any scope: a watch delivers what their scopes
// can read.
var unscoped = map[string]bool{"Whoami": true, "Watch": true}

func byOperation(scopes map[string][]string) map[string]string {
	out := map[string]string{}
	for scope, ops := range scopes {
		for _, op := range ops {
			out[op] = scope
		}
	}
	for op, reads := range ScimOperations {
		if out[op] = "scim:write"; reads {
			out[op] = "scim:read"
		}
	}
	for _, k := range api.Kinds() {
		for op, reads := range operationsOf(k.Kind) {
			switch {
			case k.KeyScope != "" && reads:
				out[op] = k.KeyScope + ":read"
			case k.KeyScope != "" && !k.KeyReads:
				out[op] = k.KeyScope + ":write"
			}
		}
	}
	return out
}

// May returns an error if the caller's scopes do not allow the operation.
func (i Identity) May(op string) error {
	if len(i.scopes) == 0 || unscoped[op] {
		return nil
	}
	scope := keyScopes[op]
	if scope == "" {
		return api.Errorf(api.CodeForbidden, "no scope allows this operation").WithHint("requires a key without scopes")
	}
	if !api.HasScope(i.scopes, scope) {
		return api.Errorf(api.CodeForbidden, "the key's scopes do not allow this operation").WithHint("requires scope %s", scope)
	}
	return nil
}

// Watches reports whether a watch delivers a kind to the caller.
func (i Identity) Watches(kind api.Kind) bool {
	scope := kind.Info().KeyScope
	return len(i.scopes) == 0 || scope != "" && api.HasScope(i.scopes, scope+":read")
}

// ComesFrom returns an error if the key may not be used from an address. The node's own
// socket has no address and counts as loopback.
func (i Identity) ComesFrom(address string) error {
	if len(i.networks) == 0 {
		return nil
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	ip = ip.Unmap().WithZone("")
	for _, n := range i.networks {
		if p, err := netip.ParsePrefix(n); err == nil && p.Contains(ip) {
			return nil
		}
	}
	return api.Errorf(api.CodeForbidden, "the key may not be used from address %s", ip).WithHint("its allowed networks are %v", i.networks)
}

// Covers returns an error if a key that the caller creates, changes or rotates would
// have more rights than its own.
func (i Identity) Covers(s api.APIKeySpec) error {
	wider := func(what, field string) *api.Error {
		return api.Errorf(api.CodeForbidden, "the key would have more %s than yours", what).At(field)
	}
	beyond := func(scope string) bool { return !api.HasScope(i.scopes, scope) }
	if len(i.scopes) > 0 && (len(s.Scopes) == 0 || slices.ContainsFunc(s.Scopes, beyond)) {
		return wider("scopes", "spec.scopes")
	}
	if len(i.networks) > 0 && (len(s.Networks) == 0 || slices.ContainsFunc(s.Networks, i.outside)) {
		return wider("networks", "spec.networks")
	}
	if i.kind == api.KindAPIKey && i.ExpiresAt != nil && (s.ExpiresAt == nil || s.ExpiresAt.After(*i.ExpiresAt)) {
		return wider("time", "spec.expiresAt").WithHint("it may be valid until %s at the latest", i.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z"))
	}
	return nil
}

// outside reports whether a network is in none of the caller's networks.
func (i Identity) outside(network string) bool {
	n, err := netip.ParsePrefix(network)
	return err != nil || !slices.ContainsFunc(i.networks, func(own string) bool {
		p, err := netip.ParsePrefix(own)
		return err == nil && p.Bits() <= n.Bits() && p.Contains(n.Addr())
	})
}
