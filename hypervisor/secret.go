package hypervisor

import lx "libvirt.org/go/libvirtxml"

// SecretUse is the purpose of a secret.
type SecretUse string

// Uses.
const (
	SecretDisk SecretUse = "volume" // the LUKS of a disk: its passphrase
	SecretCeph SecretUse = "ceph"   // the images of a Ceph user: its key, as in a keyring
)

// MaxSecret is the length of the longest value.
const MaxSecret = 4096

// Secret is a key that opens a disk. Its value is never in a domain's XML.
type Secret struct {
	UUID  string // SecretUUID(Name)
	Use   SecretUse
	Name  string // shown in libvirt's list of secrets
	Value []byte // decoded; Ceph writes its keys in base64
}

// NewSecret returns a secret with the UUID of its name.
func NewSecret(use SecretUse, name string, value []byte) Secret {
	return Secret{UUID: SecretUUID(name), Use: use, Name: name, Value: value}
}

// XML returns libvirt's definition of the secret, without its value: stored in
// memory only, and not readable by libvirt's clients.
func (s Secret) XML() (string, error) {
	if err := s.Validate(); err != nil {
		return "", err
	}
	usage := &lx.SecretUsage{Type: string(s.Use)}
	if s.Use == SecretCeph {
		usage.Name = secretMark + s.Name
	} else {
		usage.Volume = secretMark + s.Name
	}
	return (&lx.Secret{Ephemeral: "yes", Private: "yes", UUID: s.UUID, Usage: usage}).Marshal()
}

// secretMark is the prefix of the secrets' names: libvirt requires them to be
// unique.
const secretMark = "basalt/"

// Validate returns what is wrong with the secret: an *api.Error, or nil.
func (s Secret) Validate() error {
	switch {
	case s.Name == "" || len(s.Name) > 200 || !printable(s.Name):
		return invalid("secret.name", "%q is not valid, want 1 to 200 bytes without control characters", s.Name)
	case s.UUID != SecretUUID(s.Name):
		return invalid("secret.uuid", "the UUID does not belong to secret %q", s.Name)
	case s.Use != SecretDisk && s.Use != SecretCeph:
		return invalid("secret.use", "unknown use %q, want volume or ceph", s.Use)
	case len(s.Value) == 0 || len(s.Value) > MaxSecret:
		return invalid("secret.value", "secret has %d bytes, want 1 to %d", len(s.Value), MaxSecret)
	}
	return nil
}
