package server

import (
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// keyScopes are the operations that an API key's scopes are about. What is in
// none only keys without scopes may: who makes users, identity providers or
// join tokens, reads a whole backup, or installs another release, could give
// himself all the rest.
// testdata/scopes.txt says the same by hand.
var keyScopes = byOperation(map[string][]string{
	"instances:read": {"ListInstances", "GetInstance", "GetInstanceConsoleLog", "GetInstanceSamples", "ListInstanceEvents", "ListFlavors", "GetFlavor", "ListApps", "GetApp"},
	"instances:write": {"CreateInstance", "UpdateInstance", "DeleteInstance", "StartInstance", "StopInstance", "RestartInstance",
		"OpenInstanceConsole", "OpenInstanceScreen", "ExecInInstance", "CreateFlavor", "UpdateFlavor", "DeleteFlavor", "CreateApp", "UpdateApp", "DeleteApp"},
	"volumes:read":    {"ListVolumes", "GetVolume", "ListSnapshots", "GetSnapshot", "ListBackups", "GetBackup"},
	"volumes:write":   {"CreateVolume", "UpdateVolume", "DeleteVolume", "CreateSnapshot", "UpdateSnapshot", "DeleteSnapshot", "CreateBackup", "UpdateBackup", "DeleteBackup"},
	"images:read":     {"ListImages", "GetImage"},
	"images:write":    {"CreateImage", "UpdateImage", "DeleteImage", "PutImageContent"},
	"gpu-pools:read":  {"ListGPUPools", "GetGPUPool", "ListGPUs", "GetGPU", "GetGPUSamples", "ListGPUTenants"},
	"gpu-pools:write": {"CreateGPUPool", "UpdateGPUPool", "DeleteGPUPool", "UpdateGPU"},
	"networks:read": {"ListNetworks", "GetNetwork", "TraceNetwork", "ListSecurityGroups", "GetSecurityGroup", "ListExternalNetworks", "GetExternalNetwork",
		"ListRouters", "GetRouter", "ListFloatingIPs", "GetFloatingIP", "ListLoadBalancers", "GetLoadBalancer"},
	"networks:write": {"CreateNetwork", "UpdateNetwork", "DeleteNetwork", "CreateSecurityGroup", "UpdateSecurityGroup", "DeleteSecurityGroup",
		"CreateExternalNetwork", "UpdateExternalNetwork", "DeleteExternalNetwork", "CreateFloatingIP", "UpdateFloatingIP", "DeleteFloatingIP",
		"CreateLoadBalancer", "UpdateLoadBalancer", "DeleteLoadBalancer"},
	"nodes:read":          {"ListNodes", "GetNode", "GetNodeLeaks", "GetNodeSamples", "ListMigrations", "GetMigration", "GetCluster", "ListUpgrades", "GetUpgrade"},
	"nodes:write":         {"UpdateNode", "DeleteNode", "CreateMigration", "UpdateMigration", "DeleteMigration"},
	"storage:read":        {"ListBackupTargets", "GetBackupTarget", "ListDisks", "GetDisk", "ListCephClusters", "GetCephCluster"},
	"storage:write":       {"CreateBackupTarget", "UpdateBackupTarget", "DeleteBackupTarget", "UpdateDisk", "CreateCephCluster", "UpdateCephCluster", "DeleteCephCluster"},
	"organizations:read":  {"ListOrganizations", "GetOrganization", "GetOrganizationQuota"},
	"organizations:write": {"CreateOrganization", "UpdateOrganization", "DeleteOrganization"},
	"projects:read":       {"ListProjects", "GetProject", "GetProjectQuota"},
	"projects:write":      {"CreateProject", "UpdateProject", "DeleteProject"},
	"api-keys:read":       {"ListAPIKeys", "GetAPIKey"},
	"api-keys:write":      {"CreateAPIKey", "UpdateAPIKey", "DeleteAPIKey", "RotateAPIKey"}, // of no wider scope: covers
	"users:read":          {"ListUsers", "GetUser"},
	"audit:read":          {"ListAuditEvents"},
	"alerts:read":         {"ListAlerts"}, // of its own: they tell of customers, nodes and storage together
	"webhooks:read":       {"ListWebhooks", "GetWebhook", "ListWebhookDeliveries"},
	"webhooks:write":      {"CreateWebhook", "UpdateWebhook", "DeleteWebhook", "RotateWebhook", "ReplayWebhook", "TestWebhook"},
	"usage:read":          {"ListUsageRecords", "ListUsage", "ExportUsage"},
	"billing:read": {"ListPriceBooks", "GetPriceBook", "PreviewInvoice", "ExplainInvoice", "ListInvoices", "GetInvoice", "ExplainInvoiceLine",
		"ListCreditNotes", "GetCreditNote", "ListPayments", "GetPayment", "GetLedger", "GetWallet",
		"ListBudgets", "GetBudget", "SimulatePriceBook", "GetRevenue"},
	"billing:write": {"CreatePriceBook", "UpdatePriceBook", "DeletePriceBook", "CreateCreditNote", "CreatePayment",
		"CreateBudget", "UpdateBudget", "DeleteBudget"},
	"services:read": {"ListServices", "GetService", "ListServiceUsage"},
	// With them comes a way into what was sold.
	"services:write": {"PutService", "DeleteService", "SuspendService", "ResumeService", "SetServicePassword", "CreateServiceLoginLink"},
})

// unscoped are an operation for keys of any scope: a watch shows them what
// their scopes read.
var unscoped = map[string]bool{"Whoami": true, "Watch": true}

// kindScopes are what a watch of a kind needs.
var kindScopes = map[api.Kind]string{
	api.KindInstance: "instances:read", api.KindFlavor: "instances:read", api.KindApp: "instances:read",
	api.KindVolume: "volumes:read", api.KindSnapshot: "volumes:read", api.KindBackup: "volumes:read",
	api.KindImage: "images:read", api.KindGPUPool: "gpu-pools:read", api.KindGPU: "gpu-pools:read",
	api.KindNetwork: "networks:read", api.KindSecurityGroup: "networks:read", api.KindExternalNetwork: "networks:read",
	api.KindRouter: "networks:read", api.KindFloatingIP: "networks:read", api.KindLoadBalancer: "networks:read",
	api.KindNode: "nodes:read", api.KindMigration: "nodes:read", api.KindUpgrade: "nodes:read",
	api.KindBackupTarget: "storage:read", api.KindDisk: "storage:read", api.KindCephCluster: "storage:read",
	api.KindOrganization: "organizations:read", api.KindProject: "projects:read", api.KindAPIKey: "api-keys:read", api.KindUser: "users:read",
	api.KindWebhook: "webhooks:read", api.KindInvoice: "billing:read", api.KindCreditNote: "billing:read", api.KindPayment: "billing:read", api.KindBudget: "billing:read", api.KindPriceBook: "billing:read", api.KindService: "services:read",
}

func byOperation(scopes map[string][]string) map[string]string {
	out := map[string]string{}
	for scope, ops := range scopes {
		for _, op := range ops {
			out[op] = scope
		}
	}
	return out
}

// may says whether the caller's scopes allow what its role does.
func (i identity) may(op string) error {
	if len(i.scopes) == 0 || unscoped[op] {
		return nil
	}
	scope := keyScopes[op]
	if scope == "" {
		return api.Errorf(api.CodeForbidden, "no scope of a key allows this").WithHint("it takes a key without scopes")
	}
	if !api.HasScope(i.scopes, scope) {
		return api.Errorf(api.CodeForbidden, "the key's scopes do not allow this").WithHint("it takes scope %s", scope)
	}
	return nil
}

// watches says whether a watch shows the caller a kind.
func (i identity) watches(kind api.Kind) bool {
	return len(i.scopes) == 0 || kindScopes[kind] != "" && api.HasScope(i.scopes, kindScopes[kind])
}

// comesFrom says whether the key may be used from an address. The node's own
// socket has none: it counts as loopback.
func (i identity) comesFrom(address string) error {
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
	return api.Errorf(api.CodeForbidden, "this key may not be used from %s", ip).WithHint("its networks are %v", i.networks)
}

// covers says whether a key that the caller makes, changes or renews is no wider
// than its own.
func (i identity) covers(s api.APIKeySpec) error {
	wider := func(what, field string) *api.Error {
		return api.Errorf(api.CodeForbidden, "that key would have more %s than yours", what).At(field)
	}
	beyond := func(scope string) bool { return !api.HasScope(i.scopes, scope) }
	if len(i.scopes) > 0 && (len(s.Scopes) == 0 || slices.ContainsFunc(s.Scopes, beyond)) {
		return wider("scopes", "spec.scopes")
	}
	if len(i.networks) > 0 && (len(s.Networks) == 0 || slices.ContainsFunc(s.Networks, i.outside)) {
		return wider("networks", "spec.networks")
	}
	if i.kind == api.KindAPIKey && i.expiresAt != nil && (s.ExpiresAt == nil || s.ExpiresAt.After(*i.expiresAt)) {
		return wider("time", "spec.expiresAt").WithHint("it is good until %s at the latest", i.expiresAt.UTC().Format("2006-01-02T15:04:05Z"))
	}
	return nil
}

// outside says whether a network is in none of the caller's.
func (i identity) outside(network string) bool {
	n, err := netip.ParsePrefix(network)
	return err != nil || !slices.ContainsFunc(i.networks, func(own string) bool {
		p, err := netip.ParsePrefix(own)
		return err == nil && p.Bits() <= n.Bits() && p.Contains(n.Addr())
	})
}
