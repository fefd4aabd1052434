// Package api holds Basalt's kinds: what an operator or tenant asks for
// (Spec), where the planner puts it (Assignment) and what the node's agent saw
// (Status). Every field has exactly one writer. The package imports only the
// standard library; types.gen.go comes from openapi.yaml.
package api

import (
	"encoding/json"
	"fmt"
)

// Kind names a type of object.
type Kind string

// The kinds.
const (
	KindOrganization     Kind = "Organization"
	KindProject          Kind = "Project"
	KindAPIKey           Kind = "APIKey"
	KindUser             Kind = "User"
	KindNode             Kind = "Node"
	KindIdentityProvider Kind = "IdentityProvider"
	KindGPU              Kind = "GPU"
	KindGPUPool          Kind = "GPUPool"
	KindApp              Kind = "App"
	KindFlavor           Kind = "Flavor"
	KindImage            Kind = "Image"
	KindVolume           Kind = "Volume"
	KindInstance         Kind = "Instance"
	KindUsageRecord      Kind = "UsageRecord"
	KindInvoice          Kind = "Invoice"
	KindCreditNote       Kind = "CreditNote"
	KindPayment          Kind = "Payment"
	KindBudget           Kind = "Budget"
	KindPriceBook        Kind = "PriceBook"
	KindMigration        Kind = "Migration"
	KindJoinToken        Kind = "JoinToken"
	KindWebhook          Kind = "Webhook"

	KindNetwork         Kind = "Network"
	KindSecurityGroup   Kind = "SecurityGroup"
	KindExternalNetwork Kind = "ExternalNetwork"
	KindRouter          Kind = "Router"
	KindFloatingIP      Kind = "FloatingIP"
	KindLoadBalancer    Kind = "LoadBalancer"
	KindSnapshot        Kind = "Snapshot"
	KindBackupTarget    Kind = "BackupTarget"
	KindBackup          Kind = "Backup"
	KindDisk            Kind = "Disk"
	KindCephCluster     Kind = "CephCluster"
	KindUpgrade         Kind = "Upgrade"

	KindService Kind = "Service"

	// KindClusterCA is internal: what the cluster signs certificates with. The
	// API neither shows nor takes it.
	KindClusterCA Kind = "ClusterCA"
	// KindVolumeKeys is internal: what wraps the keys of encrypted volumes.
	KindVolumeKeys Kind = "VolumeKeys"
	// KindCephKeys is internal: the keys of Ceph's daemons and clients.
	KindCephKeys Kind = "CephKeys"
	// KindSession is internal: the API shows a user his own.
	KindSession Kind = "Session"
	// KindAuditCheck is internal: what the leader found when it verified the audit
	// trail.
	KindAuditCheck Kind = "AuditCheck"
	// KindLoginLink is internal: a token that logs somebody in, once.
	KindLoginLink Kind = "LoginLink"
	// KindBranding is internal: there is one object of it, which the API shows as
	// Branding.
	KindBranding Kind = "Branding"
	// KindSeries is internal: how far the numbers of a seller's documents are.
	KindSeries Kind = "Series"
	// KindExternalIdentity is internal: a user as an identity provider knows it.
	KindExternalIdentity Kind = "ExternalIdentity"
	// KindOVN and KindChassis are internal: what was decided about OVN's
	// databases, and how each node's part of the network is.
	KindOVN     Kind = "OVN"
	KindChassis Kind = "Chassis"
)

// Object is an object of any kind as the store keeps it. What the store
// returns is read-only.
type Object struct {
	Kind       Kind            `json:"kind"`
	Meta       Meta            `json:"meta"`
	Spec       json.RawMessage `json:"spec,omitempty"`
	Assignment json.RawMessage `json:"assignment,omitempty"`
	Status     json.RawMessage `json:"status,omitempty"`
	// Claims are the names that no other object may hold while this one is
	// there, sorted. The API does not show them.
	Claims []string `json:"claims,omitempty"`
	// Uses and Limits are its part in quotas. The API shows them where they
	// have a meaning, and not here.
	Uses   Amounts `json:"uses,omitempty"`
	Limits Amounts `json:"limits,omitempty"`
}

// Encode is the stored form of a Spec, Assignment or Status.
func Encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("api: %T cannot be encoded: %v", v, err)) // only our own plain structs come here
	}
	return raw
}
