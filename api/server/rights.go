package server

// rights is who may do what: the roles that may, by operationId. What they may
// do it to is their reach (identity.sees and identity.owns). An operation that
// is not here is refused. testdata/rights.txt says the same in words of its own,
// and a test holds the two together.
var rights = map[string]roles{
	"ListInstances": viewers, "GetInstance": viewers, "GetInstanceConsoleLog": viewers, "GetInstanceSamples": viewers, "ListInstanceEvents": viewers,
	"CreateInstance": members, "UpdateInstance": members, "DeleteInstance": members,
	"StartInstance": members, "StopInstance": members, "RestartInstance": members,
	"OpenInstanceConsole": members, "OpenInstanceScreen": members, "ExecInInstance": members,

	"ListVolumes": viewers, "GetVolume": viewers,
	"CreateVolume": members, "UpdateVolume": members, "DeleteVolume": members,

	"ListImages": viewers, "GetImage": viewers,
	"CreateImage": members, "UpdateImage": members, "DeleteImage": members,
	"PutImageContent": members,

	"ListApps": viewers, "GetApp": viewers,
	"CreateApp": operators, "UpdateApp": operators, "DeleteApp": operators,
	"ListFlavors": viewers, "GetFlavor": viewers,
	"CreateFlavor": operators, "UpdateFlavor": operators, "DeleteFlavor": operators,

	"ListGPUPools": viewers, "GetGPUPool": viewers,
	"CreateGPUPool": operators, "UpdateGPUPool": operators, "DeleteGPUPool": operators,

	"ListGPUs": operators, "GetGPU": operators, "UpdateGPU": operators, "GetGPUSamples": operators, "ListGPUTenants": operators,

	"ListNodes": operators, "GetNode": operators, "UpdateNode": operators,

	"DeleteNode": operators, "GetNodeLeaks": operators, "GetNodeSamples": operators,

	"ListMigrations": operators, "GetMigration": operators,
	"CreateMigration": operators, "UpdateMigration": operators, "DeleteMigration": operators,

	"ListJoinTokens": operators, "GetJoinToken": operators,
	"CreateJoinToken": operators, "DeleteJoinToken": operators,

	"GetCluster": operators, "BackupCluster": operators, "ListAlerts": operators,

	"ListNetworks": viewers, "GetNetwork": viewers,
	"TraceNetwork":  viewers,
	"CreateNetwork": members, "UpdateNetwork": members, "DeleteNetwork": members,

	"ListSecurityGroups": viewers, "GetSecurityGroup": viewers,
	"CreateSecurityGroup": members, "UpdateSecurityGroup": members, "DeleteSecurityGroup": members,

	"ListExternalNetworks": viewers, "GetExternalNetwork": viewers,
	"CreateExternalNetwork": operators, "UpdateExternalNetwork": operators, "DeleteExternalNetwork": operators,

	"ListRouters": viewers, "GetRouter": viewers,

	"ListFloatingIPs": viewers, "GetFloatingIP": viewers,
	"CreateFloatingIP": members, "UpdateFloatingIP": members, "DeleteFloatingIP": members,

	"ListLoadBalancers": viewers, "GetLoadBalancer": viewers,
	"CreateLoadBalancer": members, "UpdateLoadBalancer": members, "DeleteLoadBalancer": members,

	"ListSnapshots": viewers, "GetSnapshot": viewers,
	"CreateSnapshot": members, "UpdateSnapshot": members, "DeleteSnapshot": members,

	"ListBackupTargets": viewers, "GetBackupTarget": viewers,
	"CreateBackupTarget": operators, "UpdateBackupTarget": operators, "DeleteBackupTarget": operators,

	"ListBackups": viewers, "GetBackup": viewers,
	"CreateBackup": members, "UpdateBackup": members, "DeleteBackup": members,

	"ListDisks": operators, "GetDisk": operators,
	"UpdateDisk": operators,

	"ListCephClusters": operators, "GetCephCluster": operators,
	"CreateCephCluster": operators, "UpdateCephCluster": operators, "DeleteCephCluster": operators,

	"ListUpgrades": operators, "GetUpgrade": operators,
	"CreateUpgrade": operators, "UpdateUpgrade": operators, "DeleteUpgrade": operators, "PutUpgradePackage": operators,

	"ListOrganizations": viewers, "GetOrganization": viewers,
	"CreateOrganization": sellers, "UpdateOrganization": sellers, "DeleteOrganization": sellers,

	"ListProjects": viewers, "GetProject": viewers,
	"CreateProject": admins, "UpdateProject": admins, "DeleteProject": admins,

	"ListAuditEvents":      admins,
	"GetOrganizationQuota": viewers | billing, "GetProjectQuota": viewers,
	"ListAPIKeys": admins, "GetAPIKey": admins,
	"CreateAPIKey": admins, "UpdateAPIKey": admins, "DeleteAPIKey": admins, "RotateAPIKey": admins,

	"ListWebhooks": admins, "GetWebhook": admins, "ListWebhookDeliveries": admins,
	"CreateWebhook": admins, "UpdateWebhook": admins, "DeleteWebhook": admins,
	"RotateWebhook": admins, "ReplayWebhook": admins, "TestWebhook": admins,

	"ListUsers": admins, "GetUser": admins,
	"CreateUser": admins, "UpdateUser": admins, "DeleteUser": admins, "ResetUser": admins,

	"ListIdentityProviders": operators, "GetIdentityProvider": operators,
	"CreateIdentityProvider": operators, "UpdateIdentityProvider": operators, "DeleteIdentityProvider": operators,
	"ListLoginProviders": everybody, "BeginOIDCLogin": everybody, "FinishOIDCLogin": everybody,

	// One's own, of whatever role.
	"ListSessions": viewers | billing, "DeleteSession": viewers | billing, "Logout": viewers | billing, "ChangePassword": viewers | billing,
	"BeginTOTP": viewers | billing, "ConfirmTOTP": viewers | billing, "DisableTOTP": viewers | billing,
	"Login": everybody, "SetPassword": everybody,

	// What outside billing systems drive.
	"ListServices": sellers, "GetService": sellers, "PutService": sellers, "DeleteService": sellers,
	"SuspendService": sellers, "ResumeService": sellers, "SetServicePassword": sellers, "ListServiceUsage": sellers,
	"CreateServiceLoginLink": sellers, "CreateUserLoginLink": sellers, "LoginWithLink": everybody,

	"ListUsageRecords": viewers | billing,

	// Money: who sells notes what was paid, and takes back.
	"ListInvoices": admins | billing, "GetInvoice": admins | billing, "ExplainInvoiceLine": admins | billing,
	"ListCreditNotes": admins | billing, "GetCreditNote": admins | billing, "CreateCreditNote": sellers,
	"ListPayments": admins | billing, "GetPayment": admins | billing, "CreatePayment": sellers,
	"GetInvoicePDF": admins | billing, "GetCreditNotePDF": admins | billing,
	"SimulatePriceBook": operators, "GetRevenue": sellers,
	"GetLedger": admins | billing, "GetWallet": admins | billing,
	"ListBudgets": admins | billing, "GetBudget": admins | billing,
	"CreateBudget": admins, "UpdateBudget": admins, "DeleteBudget": admins,

	"ListPriceBooks": viewers | billing, "GetPriceBook": viewers | billing,
	"CreatePriceBook": operators, "UpdatePriceBook": operators, "DeletePriceBook": operators,

	"ListUsage": viewers | billing, "ExportUsage": admins | billing,
	"PreviewInvoice": admins | billing, "ExplainInvoice": admins | billing,
	"GetBranding": everybody, "GetLogo": everybody, "UpdateBranding": operators, "PutLogo": operators, "DeleteLogo": operators,
	"Watch":      viewers,
	"Whoami":     viewers | billing,
	"GetVersion": everybody,
	"GetHealth":  everybody,
}
