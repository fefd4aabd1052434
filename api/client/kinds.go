package client

import (
	"github.com/basalt-gpu/basalt/api"
)

// Instances are the collection of kind Instance.
func (a *API) Instances() Collection[api.Instance] {
	return Collection[api.Instance]{a: a, path: "instances", takes: inProject | place, does: all}
}

// Volumes are the collection of kind Volume.
func (a *API) Volumes() Collection[api.Volume] {
	return Collection[api.Volume]{a: a, path: "volumes", takes: inProject, does: all}
}

// Images are the collection of kind Image.
func (a *API) Images() Collection[api.Image] {
	return Collection[api.Image]{a: a, path: "images", takes: inProject, does: all}
}

// Apps are the collection of kind App.
func (a *API) Apps() Collection[api.App] {
	return Collection[api.App]{a: a, path: "apps", takes: inCluster, does: all}
}

// Flavors are the collection of kind Flavor.
func (a *API) Flavors() Collection[api.Flavor] {
	return Collection[api.Flavor]{a: a, path: "flavors", takes: inCluster, does: all}
}

// GPUPools are the collection of kind GPUPool.
func (a *API) GPUPools() Collection[api.GPUPool] {
	return Collection[api.GPUPool]{a: a, path: "gpu-pools", takes: inCluster, does: all}
}

// GPUs are the collection of kind GPU.
func (a *API) GPUs() Collection[api.GPU] {
	return Collection[api.GPU]{a: a, path: "gpus", takes: inCluster, does: gets | updates}
}

// Nodes are the collection of kind Node.
func (a *API) Nodes() Collection[api.Node] {
	return Collection[api.Node]{a: a, path: "nodes", takes: inCluster, does: gets | updates}
}

// Organizations are the collection of kind Organization.
func (a *API) Organizations() Collection[api.Organization] {
	return Collection[api.Organization]{a: a, path: "organizations", takes: inCluster, does: all}
}

// Projects are the collection of kind Project.
func (a *API) Projects() Collection[api.Project] {
	return Collection[api.Project]{a: a, path: "projects", takes: inOrganization, does: all}
}

// APIKeys are the collection of kind APIKey.
func (a *API) APIKeys() Collection[api.APIKey] {
	return Collection[api.APIKey]{a: a, path: "api-keys", takes: inProject, does: all}
}

// Invoices are the collection of kind Invoice.
func (a *API) Invoices() Collection[api.Invoice] {
	return Collection[api.Invoice]{a: a, path: "invoices", takes: inOrganization, does: gets}
}

// CreditNotes are the collection of kind CreditNote.
func (a *API) CreditNotes() Collection[api.CreditNote] {
	return Collection[api.CreditNote]{a: a, path: "credit-notes", takes: inOrganization, does: gets | creates}
}

// Payments are the collection of kind Payment.
func (a *API) Payments() Collection[api.Payment] {
	return Collection[api.Payment]{a: a, path: "payments", takes: inOrganization, does: gets | creates}
}

// Budgets are the collection of kind Budget.
func (a *API) Budgets() Collection[api.Budget] {
	return Collection[api.Budget]{a: a, path: "budgets", takes: inOrganization, does: all}
}

// PriceBooks are the collection of kind PriceBook.
func (a *API) PriceBooks() Collection[api.PriceBook] {
	return Collection[api.PriceBook]{a: a, path: "price-books", takes: inCluster, does: all}
}

// Migrations are the collection of kind Migration.
func (a *API) Migrations() Collection[api.Migration] {
	return Collection[api.Migration]{a: a, path: "migrations", takes: inCluster, does: all}
}

// JoinTokens are the collection of kind JoinToken.
func (a *API) JoinTokens() Collection[api.JoinToken] {
	return Collection[api.JoinToken]{a: a, path: "join-tokens", takes: inCluster, does: gets | creates | deletes}
}

// Networks are the collection of kind Network.
func (a *API) Networks() Collection[api.Network] {
	return Collection[api.Network]{a: a, path: "networks", takes: inProject, does: all}
}

// SecurityGroups are the collection of kind SecurityGroup.
func (a *API) SecurityGroups() Collection[api.SecurityGroup] {
	return Collection[api.SecurityGroup]{a: a, path: "security-groups", takes: inProject, does: all}
}

// ExternalNetworks are the collection of kind ExternalNetwork.
func (a *API) ExternalNetworks() Collection[api.ExternalNetwork] {
	return Collection[api.ExternalNetwork]{a: a, path: "external-networks", takes: inCluster, does: all}
}

// Routers are the collection of kind Router.
func (a *API) Routers() Collection[api.Router] {
	return Collection[api.Router]{a: a, path: "routers", takes: inProject, does: gets}
}

// FloatingIPs are the collection of kind FloatingIP.
func (a *API) FloatingIPs() Collection[api.FloatingIP] {
	return Collection[api.FloatingIP]{a: a, path: "floating-ips", takes: inProject, does: all}
}

// LoadBalancers are the collection of kind LoadBalancer.
func (a *API) LoadBalancers() Collection[api.LoadBalancer] {
	return Collection[api.LoadBalancer]{a: a, path: "load-balancers", takes: inProject, does: all}
}

// Snapshots are the collection of kind Snapshot.
func (a *API) Snapshots() Collection[api.Snapshot] {
	return Collection[api.Snapshot]{a: a, path: "snapshots", takes: inProject, does: all}
}

// BackupTargets are the collection of kind BackupTarget.
func (a *API) BackupTargets() Collection[api.BackupTarget] {
	return Collection[api.BackupTarget]{a: a, path: "backup-targets", takes: inCluster, does: all}
}

// Backups are the collection of kind Backup.
func (a *API) Backups() Collection[api.Backup] {
	return Collection[api.Backup]{a: a, path: "backups", takes: inProject, does: all}
}

// Disks are the collection of kind Disk.
func (a *API) Disks() Collection[api.Disk] {
	return Collection[api.Disk]{a: a, path: "disks", takes: inCluster, does: gets | updates}
}

// CephClusters are the collection of kind CephCluster.
func (a *API) CephClusters() Collection[api.CephCluster] {
	return Collection[api.CephCluster]{a: a, path: "ceph-clusters", takes: inCluster, does: all}
}

// Webhooks are the collection of kind Webhook.
func (a *API) Webhooks() Collection[api.Webhook] {
	return Collection[api.Webhook]{a: a, path: "webhooks", takes: inOrganization, does: all}
}

// Users are the collection of kind User.
func (a *API) Users() Collection[api.User] {
	return Collection[api.User]{a: a, path: "users", takes: inOrganization, does: all}
}

// Upgrades are the collection of kind Upgrade.
func (a *API) Upgrades() Collection[api.Upgrade] {
	return Collection[api.Upgrade]{a: a, path: "upgrades", takes: inCluster, does: all}
}

// IdentityProviders are the collection of kind IdentityProvider.
func (a *API) IdentityProviders() Collection[api.IdentityProvider] {
	return Collection[api.IdentityProvider]{a: a, path: "identity-providers", takes: inCluster, does: all}
}

// Services are the collection of kind Service. Create and Update are one verb.
func (a *API) Services() Collection[api.Service] {
	return Collection[api.Service]{a: a, path: "services", does: all, name: func(s api.Service) string { return s.Meta.Name }}
}

// UsageRecords are the collection of kind UsageRecord, in the order of their
// ends. It only has lists.
func (a *API) UsageRecords() Collection[api.UsageRecord] {
	return a.UsageRecordsOf(api.RecordQuery{})
}

// UsageRecordsOf are those of a meter, resource and period, as far as they are
// given.
func (a *API) UsageRecordsOf(of api.RecordQuery) Collection[api.UsageRecord] {
	also := parameters(api.ListUsageRecordsParams{Meter: of.Meter, Resource: of.Resource, From: of.From, To: of.To})
	return Collection[api.UsageRecord]{a: a, path: "usage-records", takes: organization | project, also: also}
}
