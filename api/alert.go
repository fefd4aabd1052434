package api

// AlertSeverity ranks how urgent an alert is.
type AlertSeverity string

// Severities.
const (
	AlertCritical AlertSeverity = "Critical"
	AlertWarning  AlertSeverity = "Warning"
)

// AlertCode identifies the problem that an alert reports. Codes are stable, since
// programs depend on them. docs/alerts.md lists them and is maintained by hand.
type AlertCode string

// The codes of all alerts.
const (
	AlertNodeLost        AlertCode = "node.lost"
	AlertNodeSuspect     AlertCode = "node.suspect"
	AlertNodeSilent      AlertCode = "node.silent"
	AlertNodeClock       AlertCode = "node.clock"
	AlertNodeCondition   AlertCode = "node.condition"
	AlertNodeStore       AlertCode = "node.store"
	AlertNodeHypervisor  AlertCode = "node.hypervisor"
	AlertNodeHardware    AlertCode = "node.hardware"
	AlertNodeStorage     AlertCode = "node.storage"
	AlertNodeCertificate AlertCode = "node.certificate"
	AlertNodeUsage       AlertCode = "node.usage"
	AlertVersions        AlertCode = "cluster.versions"
	AlertAgreement       AlertCode = "cluster.store"
	AlertQuorum          AlertCode = "cluster.quorum"
	AlertUpgradePaused   AlertCode = "cluster.upgrade"
	AlertGPUGone         AlertCode = "gpu.gone"
	AlertGPUCondition    AlertCode = "gpu.condition"
	AlertGPUPromised     AlertCode = "gpu.promised"
	AlertCephHealth      AlertCode = "ceph.health"
	AlertCephFailed      AlertCode = "ceph.failed"
	AlertDiskFailed      AlertCode = "disk.failed"
	AlertImageFailed     AlertCode = "image.failed"
	AlertInstanceFailed  AlertCode = "instance.failed"
	AlertInstancePending AlertCode = "instance.pending"
	AlertInstanceTried   AlertCode = "instance.tried"
	AlertTargetFailed    AlertCode = "backup-target.failed"
	AlertBackupFailed    AlertCode = "backup.failed"
	AlertBackupLate      AlertCode = "backup.late"
	AlertNetworkFailed   AlertCode = "network.failed"
	AlertRouterFailed    AlertCode = "router.failed"
	AlertMailFailing     AlertCode = "mail.failing"
	AlertPaymentsFailing AlertCode = "payments.failing"
	// AlertPaymentDisputed: the provider waits for a response to a dispute.
	AlertPaymentDisputed AlertCode = "payment.disputed"
	// AlertVATInvalid: customers have VAT numbers that VIES does not know.
	AlertVATInvalid AlertCode = "vat.invalid"
	// AlertVATUnverified: VIES gave no result for VAT numbers of customers.
	AlertVATUnverified AlertCode = "vat.unverified"
	// AlertVATName: VIES has another name than the customer's for a VAT number.
	AlertVATName AlertCode = "vat.name"
	// AlertTaxesUndecided: a seller issues no invoices until its taxes are set.
	AlertTaxesUndecided  AlertCode = "taxes.undecided"
	AlertMailUndelivered AlertCode = "mail.undelivered"
	// AlertMailBounced: mail was returned by a mail server that had accepted it.
	AlertMailBounced AlertCode = "mail.bounced"
	// AlertMailSuppressed: addresses get no ordinary mail any more.
	AlertMailSuppressed AlertCode = "mail.suppressed"
	// AlertMailboxFailing: the mailbox of returned mail could not be read.
	AlertMailboxFailing  AlertCode = "mail.mailbox-failing"
	AlertWebhookFailing  AlertCode = "webhook.failing"
	AlertAuditChanged    AlertCode = "audit.changed"
	AlertAuditUnanchored AlertCode = "audit.unanchored"
	AlertInvoicesOverdue AlertCode = "invoice.overdue"
)

// AlertVariant is which of several problems with the same code an alert reports. Its words
// differ from those of the code.
type AlertVariant string

// The variants; openapi.yaml describes them, and the portal has words for each code and
// each variant.
const (
	AlertHardwareWorse      AlertVariant = "node.hardware-worse"
	AlertEncryption         AlertVariant = "node.condition-encryption"
	AlertCertificateExpired AlertVariant = "node.certificate-expired"
	AlertQuorumTwo          AlertVariant = "cluster.quorum-two"
	AlertCephError          AlertVariant = "ceph.health-error"
	AlertExternalNetwork    AlertVariant = "network.failed-external"
	AlertBackupRunning      AlertVariant = "backup.late-running"
	AlertUnverified         AlertVariant = "audit.unanchored-unverified"
)
