package libvirt

import (
	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// outgoing reports whether the statistics are those of a migration from here.
func outgoing(j *lv.DomainJobInfo) bool {
	return (j.Type == lv.DOMAIN_JOB_UNBOUNDED || j.Type == lv.DOMAIN_JOB_BOUNDED) &&
		(!j.OperationSet || j.Operation == lv.DOMAIN_JOB_OPERATION_MIGRATION_OUT)
}

// progress converts the statistics of a migration.
func progress(j *lv.DomainJobInfo, phase hypervisor.MigrationPhase) hypervisor.MigrationProgress {
	p := hypervisor.MigrationProgress{
		Phase: phase, TransferredBytes: int64(j.DataProcessed), RemainingBytes: int64(j.DataRemaining),
		DiskCopiedBytes: int64(j.DiskProcessed), DiskTotalBytes: int64(j.DiskTotal), ThrottlePercent: j.AutoConvergeThrottle,
	}
	// libvirt's total is the amount at the start; it does not include memory that
	// was written again.
	p.TotalBytes = max(int64(j.DataTotal), p.TransferredBytes+p.RemainingBytes)
	return p
}
