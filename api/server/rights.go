package server

import "github.com/basalt-gpu/basalt/api"

// everybody is the role of operations that need no key.
const everybody = api.Role("")

// rights is who may do what: the weakest role that may, by operationId. What it
// may do it to is the key's scope: an operator's is everything, an admin's its
// organization, a member's and a viewer's their project (identity.sees and
// identity.owns). An operation that is not here is refused.
var rights = map[string]api.Role{
	"ListInstances": api.RoleViewer, "GetInstance": api.RoleViewer, "GetInstanceConsoleLog": api.RoleViewer,
	"CreateInstance": api.RoleMember, "UpdateInstance": api.RoleMember, "DeleteInstance": api.RoleMember,
	"StartInstance": api.RoleMember, "StopInstance": api.RoleMember, "RestartInstance": api.RoleMember,
	"OpenInstanceConsole": api.RoleMember, "ExecInInstance": api.RoleMember,

	"ListVolumes": api.RoleViewer, "GetVolume": api.RoleViewer,
	"CreateVolume": api.RoleMember, "UpdateVolume": api.RoleMember, "DeleteVolume": api.RoleMember,

	"ListImages": api.RoleViewer, "GetImage": api.RoleViewer,
	"CreateImage": api.RoleMember, "UpdateImage": api.RoleMember, "DeleteImage": api.RoleMember,
	"PutImageContent": api.RoleMember,

	"ListFlavors": api.RoleViewer, "GetFlavor": api.RoleViewer,
	"CreateFlavor": api.RoleOperator, "UpdateFlavor": api.RoleOperator, "DeleteFlavor": api.RoleOperator,

	"ListGPUPools": api.RoleViewer, "GetGPUPool": api.RoleViewer,
	"CreateGPUPool": api.RoleOperator, "UpdateGPUPool": api.RoleOperator, "DeleteGPUPool": api.RoleOperator,

	"ListGPUs": api.RoleOperator, "GetGPU": api.RoleOperator, "UpdateGPU": api.RoleOperator,

	"ListNodes": api.RoleOperator, "GetNode": api.RoleOperator, "UpdateNode": api.RoleOperator,

	"DeleteNode": api.RoleOperator, "GetNodeLeaks": api.RoleOperator,

	"ListMigrations": api.RoleOperator, "GetMigration": api.RoleOperator,
	"CreateMigration": api.RoleOperator, "UpdateMigration": api.RoleOperator, "DeleteMigration": api.RoleOperator,

	"ListJoinTokens": api.RoleOperator, "GetJoinToken": api.RoleOperator,
	"CreateJoinToken": api.RoleOperator, "DeleteJoinToken": api.RoleOperator,

	"GetCluster": api.RoleOperator, "BackupCluster": api.RoleOperator,

	"ListNetworks": api.RoleViewer, "GetNetwork": api.RoleViewer,
	"TraceNetwork":  api.RoleViewer,
	"CreateNetwork": api.RoleMember, "UpdateNetwork": api.RoleMember, "DeleteNetwork": api.RoleMember,

	"ListSecurityGroups": api.RoleViewer, "GetSecurityGroup": api.RoleViewer,
	"CreateSecurityGroup": api.RoleMember, "UpdateSecurityGroup": api.RoleMember, "DeleteSecurityGroup": api.RoleMember,

	"ListExternalNetworks": api.RoleViewer, "GetExternalNetwork": api.RoleViewer,
	"CreateExternalNetwork": api.RoleOperator, "UpdateExternalNetwork": api.RoleOperator, "DeleteExternalNetwork": api.RoleOperator,

	"ListRouters": api.RoleViewer, "GetRouter": api.RoleViewer,

	"ListFloatingIPs": api.RoleViewer, "GetFloatingIP": api.RoleViewer,
	"CreateFloatingIP": api.RoleMember, "UpdateFloatingIP": api.RoleMember, "DeleteFloatingIP": api.RoleMember,

	"ListLoadBalancers": api.RoleViewer, "GetLoadBalancer": api.RoleViewer,
	"CreateLoadBalancer": api.RoleMember, "UpdateLoadBalancer": api.RoleMember, "DeleteLoadBalancer": api.RoleMember,

	"ListSnapshots": api.RoleViewer, "GetSnapshot": api.RoleViewer,
	"CreateSnapshot": api.RoleMember, "UpdateSnapshot": api.RoleMember, "DeleteSnapshot": api.RoleMember,

	"ListBackupTargets": api.RoleViewer, "GetBackupTarget": api.RoleViewer,
	"CreateBackupTarget": api.RoleOperator, "UpdateBackupTarget": api.RoleOperator, "DeleteBackupTarget": api.RoleOperator,

	"ListBackups": api.RoleViewer, "GetBackup": api.RoleViewer,
	"CreateBackup": api.RoleMember, "UpdateBackup": api.RoleMember, "DeleteBackup": api.RoleMember,

	"ListDisks": api.RoleOperator, "GetDisk": api.RoleOperator,
	"UpdateDisk": api.RoleOperator,

	"ListCephClusters": api.RoleOperator, "GetCephCluster": api.RoleOperator,
	"CreateCephCluster": api.RoleOperator, "UpdateCephCluster": api.RoleOperator, "DeleteCephCluster": api.RoleOperator,

	"ListOrganizations": api.RoleViewer, "GetOrganization": api.RoleViewer,
	"CreateOrganization": api.RoleOperator, "UpdateOrganization": api.RoleOperator, "DeleteOrganization": api.RoleOperator,

	"ListProjects": api.RoleViewer, "GetProject": api.RoleViewer,
	"CreateProject": api.RoleAdmin, "UpdateProject": api.RoleAdmin, "DeleteProject": api.RoleAdmin,

	"ListAPIKeys": api.RoleAdmin, "GetAPIKey": api.RoleAdmin,
	"CreateAPIKey": api.RoleAdmin, "UpdateAPIKey": api.RoleAdmin, "DeleteAPIKey": api.RoleAdmin,

	"ListUsageRecords": api.RoleViewer, "GetUsageRecord": api.RoleViewer,

	"ListAccounts": api.RoleAdmin, "GetAccount": api.RoleAdmin,
	"CreateAccount": api.RoleOperator, "UpdateAccount": api.RoleOperator, "DeleteAccount": api.RoleOperator,

	"ListPriceBooks": api.RoleViewer, "GetPriceBook": api.RoleViewer,
	"CreatePriceBook": api.RoleOperator, "UpdatePriceBook": api.RoleOperator, "DeletePriceBook": api.RoleOperator,

	"PreviewInvoice": api.RoleAdmin,
	"Watch":          api.RoleViewer,
	"Whoami":         api.RoleViewer,
	"GetVersion":     everybody,
	"GetHealth":      everybody,
}

// identity is the key that a request came with.
type identity struct {
	key     api.APIKey
	role    api.Role
	org     string // of admin, member, viewer
	project string // of member, viewer
}

func identityOf(k api.APIKey) identity {
	return identity{k, k.Spec.Role, k.Meta.Organization, k.Meta.Project}
}

// inScope says whether what belongs to org and project is the key's own.
func (i identity) inScope(org, project string) bool {
	switch i.role {
	case api.RoleOperator:
		return true
	case api.RoleAdmin:
		return i.org != "" && org == i.org
	case api.RoleMember, api.RoleViewer:
		return i.project != "" && project == i.project && org == i.org
	}
	return false
}

// sees says whether an object exists for the key.
func (i identity) sees(o api.Object) bool {
	m := o.Meta
	if _, ok := scopes[o.Kind]; !ok {
		return false // the cluster's own
	}
	switch o.Kind {
	case api.KindNode, api.KindGPU, api.KindMigration, api.KindJoinToken, api.KindDisk, api.KindCephCluster:
		return i.role == api.RoleOperator
	case api.KindFlavor, api.KindGPUPool, api.KindPriceBook, api.KindExternalNetwork, api.KindBackupTarget:
		return i.role.Rank() > 0
	case api.KindOrganization:
		return i.role == api.RoleOperator || i.org != "" && m.ID == i.org
	case api.KindProject:
		return i.inScope(m.Organization, m.ID)
	case api.KindAPIKey, api.KindAccount:
		return i.role.Rank() >= api.RoleAdmin.Rank() && i.inScope(m.Organization, m.Project)
	case api.KindImage:
		if i.inScope(m.Organization, m.Project) {
			return true
		}
		image, err := api.Decode[api.Image](o)
		return err == nil && image.Spec.Public && i.role.Rank() > 0
	}
	return i.inScope(m.Organization, m.Project)
}

// owns says whether the key may change an object that it sees.
func (i identity) owns(o api.Object) bool {
	switch o.Kind {
	case api.KindProject:
		return i.inScope(o.Meta.Organization, o.Meta.ID)
	case api.KindFlavor, api.KindGPUPool, api.KindPriceBook, api.KindOrganization, api.KindExternalNetwork, api.KindBackupTarget:
		return i.role == api.RoleOperator
	}
	return i.sees(o) && i.inScope(o.Meta.Organization, o.Meta.Project)
}
