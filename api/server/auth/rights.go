package auth

import "github.com/basalt-gpu/basalt/api"

// Rights maps operation IDs to the roles that may call them. Which objects they may
// access is decided by Identity.Sees and Identity.Owns. An operation that is not listed
// is refused. testdata/rights.txt contains the same in its own notation, and a test
// compares the two.
var Rights = withKinds(map[string]Roles{
	"GetInstanceConsoleLog": viewers, "GetInstanceSamples": viewers, "ListInstanceEvents": viewers, "GetInstanceConnection": viewers, "GetInstanceCost": viewers,
	"StartInstance": members, "StopInstance": members, "RestartInstance": members, "ReinstallInstance": members, "RescueInstance": members, "UnrescueInstance": members,
	"OpenInstanceConsole": members, "OpenInstanceScreen": members, "OpenInstanceShell": members, "OpenInstanceApp": members, "ExecInInstance": members,

	"PutImageContent": members,

	"GetGPUSamples": operators, "ListGPUTenants": operators,

	"GetNodeLeaks": operators, "GetNodeSamples": operators,

	"GetCluster": operators, "ReplaceCA": operators, "CancelCAReplacement": operators, "BackupCluster": operators, "ListAlerts": operators, "GetCapacity": operators,

	"TraceNetwork": viewers,

	"ListOffers": viewers,

	"PutUpgradePackage": operators,

	"ListAuditEvents": admins, "ListAccess": admins,
	"GetOrganizationQuota": viewers | billing, "GetProjectQuota": viewers,
	"RotateAPIKey": admins,

	"ListWebhookDeliveries": admins,
	"SetDefaultCard":        admins | billing,
	"RotateWebhook":         admins, "ReplayWebhook": admins, "TestWebhook": admins,

	"ResetUser": admins, "InviteUser": admins,

	"ListLoginProviders": Everybody, "BeginOIDCLogin": Everybody, "FinishOIDCLogin": Everybody,
	"GetSAMLMetadata": Everybody, "ReceiveSAMLResponse": Everybody,
	"BeginPasskeyLogin": Everybody, "FinishPasskeyLogin": Everybody,

	// The caller's own credentials, for every role.
	"ListSessions": viewers | billing, "DeleteSession": viewers | billing, "Logout": viewers | billing, "ChangePassword": viewers | billing, "ChooseLanguage": viewers | billing,
	"BeginTOTP": viewers | billing, "ConfirmTOTP": viewers | billing, "DisableTOTP": viewers | billing,
	"GetSignUp": Everybody, "RequestSignUp": Everybody, "FinishSignUp": Everybody,
	"ListPasskeys": viewers | billing, "BeginPasskey": viewers | billing, "ConfirmPasskey": viewers | billing, "DeletePasskey": viewers | billing,
	"Login": Everybody, "SetPassword": Everybody, "RequestPasswordReset": Everybody,

	// Operations for external billing systems.
	"SuspendService": Sellers, "ResumeService": Sellers, "SetServicePassword": Sellers, "ListServiceUsage": Sellers,
	"CreateServiceLoginLink": Sellers, "CreateUserLoginLink": Sellers, "LoginWithLink": Everybody,

	// Billing: sellers record payments and issue credit notes.
	"ExplainInvoiceLine": admins | billing,
	"GetInvoicePDF":      admins | billing, "GetCreditNotePDF": admins | billing,
	"SimulatePriceBook": Sellers, "QuotePriceBook": Sellers, "ListPriceBookVersions": Sellers, "GetRevenue": Sellers,
	"GetLedger": admins | billing, "GetWallet": admins | billing,
	"ReceivePaymentEvent": Everybody,

	"RedeemVoucher": admins | billing, "IssueFinalInvoices": admins | billing,

	"ListUsage": viewers | billing, "ExportUsage": admins | billing,
	"PreviewInvoice": admins | billing, "ListCosts": admins | billing, "ExplainInvoice": admins | billing,
	"GetLogo": Everybody, "PutLogo": operators, "DeleteLogo": operators,
	"GetOrganizationLogo": Sellers, "PutOrganizationLogo": Sellers, "DeleteOrganizationLogo": Sellers,
	"TestMail": operators, "TestIdentityProvider": admins, "ListRefusedSignIns": admins,
	"Watch":      viewers,
	"Whoami":     viewers | billing,
	"GetVersion": Everybody,
	"GetHealth":  Everybody,
})

// ScimOperations maps the operations of SCIM (RFC 7644), which lie outside of
// openapi.yaml, to whether each only reads. Admins may call them: what they do in their
// organization is less than what an admin may do in it.
var ScimOperations = map[string]bool{
	"ListScimUsers": true, "GetScimUser": true, "CreateScimUser": false, "ReplaceScimUser": false, "PatchScimUser": false, "DeleteScimUser": false,
	"ListScimGroups": true, "GetScimGroup": true, "CreateScimGroup": false, "ReplaceScimGroup": false, "PatchScimGroup": false, "DeleteScimGroup": false,
	"GetScimConfig": true,
}

// RolesFor returns the roles that may call an operation; false if none may.
func RolesFor(op string) (Roles, bool) {
	if _, ok := ScimOperations[op]; ok {
		return admins, true
	}
	roles, ok := Rights[op]
	return roles, ok
}

// rights are those of a kind.
type rights struct {
	read  Roles // may list and get its objects
	write Roles // may create, update and delete them
	// sees and owns report whether a caller may see and change an object; nil: by the
	// readers of the kind.
	sees, owns func(Identity, api.Object) bool
}

// kindRights are the rights of all kinds.
var kindRights = map[api.Kind]rights{
	api.KindInstance:         {read: viewers, write: members},
	api.KindVolume:           {read: viewers, write: members},
	api.KindImage:            {read: viewers, write: members, sees: seesImage},
	api.KindFlavor:           {read: viewers, write: operators},
	api.KindApp:              {read: viewers, write: operators},
	api.KindProject:          {read: viewers, write: admins, sees: reachesProject, owns: reachesProject},
	api.KindInvoice:          {read: admins | billing},
	api.KindPayment:          {read: admins | billing, write: Sellers},
	api.KindRefund:           {read: admins | billing, write: Sellers},
	api.KindDispute:          {read: admins | billing},
	api.KindVATCheck:         {read: admins | billing},
	api.KindCheckout:         {read: admins | billing, write: admins | billing},
	api.KindCard:             {read: admins | billing, write: admins | billing},
	api.KindVoucher:          {read: operators, write: operators},
	api.KindCreditNote:       {read: admins | billing, write: Sellers},
	api.KindMailSuppression:  {read: admins, write: operators},
	api.KindMailMessage:      {read: operators, write: operators},
	api.KindBudget:           {read: admins | billing, write: admins},
	api.KindAPIKey:           {read: admins, write: admins, owns: ownsKey},
	api.KindOrganization:     {read: viewers, write: Sellers, sees: seesOrganization, owns: ownsOrganization},
	api.KindUser:             {read: admins, write: admins, owns: ownsUser},
	api.KindGroup:            {read: admins, write: admins, owns: ownsGroup},
	api.KindWebhook:          {read: admins, write: admins},
	api.KindSupportGrant:     {read: admins, write: admins},
	api.KindPortalDomain:     {read: admins, write: Sellers},
	api.KindService:          {read: Sellers, write: Sellers},
	api.KindPriceBook:        {read: viewers | billing, write: Sellers, sees: seesPriceBook, owns: ownsPriceBook},
	api.KindSSHKey:           {read: viewers | billing, write: viewers | billing, sees: hasKey, owns: hasKey},
	api.KindUsageRecord:      {read: viewers | billing},
	api.KindIdentityProvider: {read: admins, write: admins},
	api.KindLoadBalancer:     {read: viewers, write: members},
	api.KindFloatingIP:       {read: viewers, write: members},
	api.KindSnapshot:         {read: viewers, write: members},
	api.KindBackup:           {read: viewers, write: members},
	api.KindBackupTarget:     {read: viewers, write: operators},
	api.KindNetwork:          {read: viewers, write: members},
	api.KindSecurityGroup:    {read: viewers, write: members},
	api.KindRouter:           {read: viewers},
	api.KindExternalNetwork:  {read: viewers, write: operators},
	api.KindNode:             {read: operators, write: operators},
	api.KindGPU:              {read: operators, write: operators},
	api.KindGPUPool:          {read: viewers, write: operators},
	api.KindDisk:             {read: operators, write: operators},
	api.KindCephCluster:      {read: operators, write: operators},
	api.KindMigration:        {read: operators, write: operators},
	api.KindJoinToken:        {read: operators, write: operators},
	api.KindUpgrade:          {read: operators, write: operators},
}

// settingsRights are the roles that may read settings, and those that may change them.
var settingsRights = map[string]struct{ read, write Roles }{
	"Branding":                   {read: Everybody, write: operators},
	"OrganizationBranding":       {read: Sellers, write: Sellers},
	"MailSettings":               {read: operators, write: operators},
	"PaymentSettings":            {read: operators, write: operators},
	"SecuritySettings":           {read: operators, write: operators},
	"SignUpSettings":             {read: operators, write: operators},
	"OrganizationSignUpSettings": {read: Sellers, write: Sellers},
	"ACMESettings":               {read: operators, write: operators},
	"TopUp":                      {read: admins | billing, write: admins | billing},
	"AutoPay":                    {read: admins | billing, write: admins | billing},
	"TaxSettings":                {read: Sellers, write: Sellers},
}

// withKinds adds the operations that kinds have in common, and those that settings have.
func withKinds(all map[string]Roles) map[string]Roles {
	for kind, may := range kindRights {
		for op, reads := range operationsOf(kind) {
			if all[op] = may.write; reads {
				all[op] = may.read
			}
		}
	}
	for name, may := range settingsRights {
		all["Get"+name], all["Update"+name], all["Patch"+name] = may.read, may.write, may.write
	}
	return all
}

// operationsOf returns the operations that a kind's row defines, and whether each only
// reads.
func operationsOf(kind api.Kind) map[string]bool {
	all := map[string]bool{ListOf(kind): true}
	const canPatch = api.CanGet | api.CanUpdate
	for verb, op := range map[api.Verbs]string{api.CanGet: "Get", api.CanCreate: "Create", api.CanUpdate: "Update", canPatch: "Patch", api.CanPut: "Put", api.CanDelete: "Delete"} {
		if kind.Info().Verbs&verb == verb {
			all[op+string(kind)] = verb == api.CanGet
		}
	}
	return all
}

// ListOf returns the name of the operation that lists a kind.
func ListOf(kind api.Kind) string { return "List" + string(kind) + "s" }
