package api

import (
	"regexp"
	"slices"
	"strings"
)

// ServiceType is what kind of product was sold.
type ServiceType string

// The types.
const (
	ServiceIsMachine ServiceType = "machine"
	ServiceIsAccount ServiceType = "account"
)

// ServicePhase is the phase of a service. While its machine runs, it is the machine's
// own phase.
//
//	Pending … Running ◄─► Suspended      Terminating ─► Terminated
//	       └── any ───────────┴──(ended)───────┘   └── (sold again) ─► Pending
type ServicePhase string

// The phases that are not phases of an instance.
const (
	ServiceActive      ServicePhase = "Active"
	ServiceSuspended   ServicePhase = "Suspended"
	ServiceNoMachine   ServicePhase = "NoMachine"
	ServiceTerminating ServicePhase = "Terminating"
	ServiceTerminated  ServicePhase = "Terminated"
)

var (
	installationPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)
	servicePattern      = regexp.MustCompile(`^[A-Za-z0-9._-]{1,40}$`)
)

// ServiceName returns the name of an installation's service.
func ServiceName(installation, service string) string { return installation + ":" + service }

// ParseServiceName splits a service's name into its parts.
func ParseServiceName(name string) (installation, service string, err error) {
	installation, service, ok := strings.Cut(name, ":")
	if !ok || !servicePattern.MatchString(service) {
		return "", "", invalid("meta.name", "%q is not a valid name of a service", clip(name)).
			WithHint("INSTALLATION:SERVICE, the service 1 to 40 of A-Z, a-z, 0-9, '.', '_' and '-'")
	}
	return installation, service, ValidateInstallation(installation)
}

// ValidateInstallation checks the name of a billing system's installation.
func ValidateInstallation(installation string) error {
	if !installationPattern.MatchString(installation) {
		return invalid("installation", "%q is not a valid name of an installation", clip(installation)).WithHint("1 to 40 of a-z, 0-9 and '-', beginning and ending with a letter or digit")
	}
	return nil
}

// ServiceClaim returns the claim that makes a service's name unique for a seller.
func ServiceClaim(seller, name string) []string { return []string{"service/" + seller + "/" + name} }

// MachineQuota returns the quota of a machine's service unless its spec sets one:
// enough for the machine and its root volume.
func MachineQuota(uses Amounts, rootBytes int64, given Amounts) Amounts {
	q := Amounts{}
	for _, name := range amountQuotas {
		q[name] = uses[name]
	}
	q[QuotaVolumes] = rootBytes
	for name, n := range given {
		q[name] = n
	}
	return q
}

// ValidateService checks a spec. The machine is validated as an instance, separately.
func ValidateService(s ServiceSpec) error {
	var bad faults
	bad.note(oneOf("spec.type", s.Type, ServiceIsMachine, ServiceIsAccount), text("spec.displayName", s.DisplayName), ValidateQuota(s.Quota))
	switch {
	case len(s.Email) > maxLoginBytes || !loginPattern.MatchString(s.Email):
		bad.note(invalid("spec.email", "%q is not a valid e-mail address", clip(s.Email)).WithHint("e.g. ann@example.com"))
	case s.Type == ServiceIsMachine && s.Machine == nil:
		bad.note(invalid("spec.machine", "a machine is required").WithHint("name its flavor and image"))
	case s.Type == ServiceIsAccount && s.Machine != nil:
		bad.note(invalid("spec.machine", "a service of type account must not have a machine").WithHint("omit it, or use type machine"))
	case s.Machine != nil:
		bad.note(ValidateName(s.Machine.Name))
	}
	return bad.err()
}

// ChangeService checks which fields change.
func ChangeService(old, s ServiceSpec) error {
	if old.Type != s.Type {
		return invalid("spec.type", "the type of a service cannot change from %s", old.Type).WithHint("end it and create another")
	}
	return nil
}

// Instance returns the spec of the instance that implements a service's machine.
func (m ServiceMachine) Instance() InstanceSpec {
	return InstanceSpec{Flavor: m.Flavor, Image: m.Image, Vgpu: m.Vgpu, RootBytes: m.RootBytes, SSHKeys: slices.Clone(m.SSHKeys),
		UserData: m.UserData, StoragePool: m.StoragePool}
}
