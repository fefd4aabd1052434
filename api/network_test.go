package api

import (
	"net/netip"
	"strings"
	"testing"
)

// refused fails the test unless err has code CodeInvalid at the field; an empty field
// means no error.
func refused(t *testing.T, what, field string, err error) {
	t.Helper()
	switch e, ok := err.(*Error); { //nolint:errorlint // ours, as it was made
	case field == "" && err != nil:
		t.Errorf("%s: error %v, want none", what, err)
	case field != "" && (!ok || e.Code != CodeInvalid || e.Field != field):
		t.Errorf("%s: error %v, want one with code %s at %s", what, err, CodeInvalid, field)
	}
}

func TestNetworks(t *testing.T) {
	for cidrs, field := range map[[2]string]string{
		{"10.0.0.0/8", ""}: "", {"10.0.0.0/29", ""}: "", {"", "fd00::/64"}: "", {"192.168.1.0/24", "fd00:1::/64"}: "",
		{"", ""}: "spec.cidr4", {"10.0.0.1/24", ""}: "spec.cidr4", {"10.0.0.0/7", ""}: "spec.cidr4", {"10.0.0.0/30", ""}: "spec.cidr4",
		{"10.0.0.0", ""}: "spec.cidr4", {"fd00::/64", ""}: "spec.cidr4", {"169.254.0.0/16", ""}: "spec.cidr4", {"127.0.0.0/8", ""}: "spec.cidr4",
		{"224.0.0.0/8", ""}: "spec.cidr4", {"::ffff:10.0.0.0/104", ""}: "spec.cidr4",
		{"", "fd00::/48"}: "spec.cidr6", {"", "fd00::1/64"}: "spec.cidr6", {"", "fe80::/64"}: "spec.cidr6", {"", "ff00::/64"}: "spec.cidr6",
		{"", "10.0.0.0/24"}: "spec.cidr6",
	} {
		refused(t, cidrs[0]+" "+cidrs[1], field, ValidateNetwork(NetworkSpec{Cidr4: cidrs[0], Cidr6: cidrs[1]}))
	}
	refused(t, "mtu", "spec.mtu", ValidateNetwork(NetworkSpec{Cidr6: "fd00::/64", Mtu: 1000}))
	refused(t, "dns", "spec.dnsServers", ValidateNetwork(NetworkSpec{Cidr4: "10.0.0.0/24", DNSServers: []string{"resolver"}}))
	for address, ok := range map[string]bool{"10.0.0.2": true, "10.0.0.253": true, "10.0.0.254": false, "10.0.0.0": false, "10.0.0.1": false, "10.0.0.255": false,
		"10.0.1.1": false, "fd00::5": false, "010.0.0.2": false, "x": false} {
		if err := ValidateAddress("f", address, "10.0.0.0/24"); (err == nil) != ok {
			t.Errorf("ValidateAddress(%s) in 10.0.0.0/24 = %v, want accepted: %v", address, err, ok)
		}
	}
	if got := Overlap(NetworkSpec{Cidr4: "10.0.0.0/16"}, NetworkSpec{Cidr4: "10.0.7.0/24"}); got != "10.0.7.0/24" {
		t.Errorf("Overlap of 10.0.0.0/16 and 10.0.7.0/24 = %q, want 10.0.7.0/24", got)
	}
	if got := Overlap(NetworkSpec{Cidr4: "10.0.0.0/24", Cidr6: "fd00::/64"}, NetworkSpec{Cidr4: "10.0.1.0/24", Cidr6: "fd00:0:0:1::/64"}); got != "" {
		t.Errorf("Overlap of disjoint networks = %q, want none", got)
	}
}

func TestProjectNetworks(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []ProjectID{"prj-1", "prj-2", "prj-3"} {
		s := ProjectNetwork(id)
		refused(t, string(id), "", ValidateNetwork(s))
		if !netip.MustParsePrefix("10.64.0.0/10").Contains(netip.MustParsePrefix(s.Cidr4).Addr()) || seen[s.Cidr4] || seen[s.Cidr6] || s.Cidr4 != ProjectNetwork(id).Cidr4 {
			t.Errorf("network of project %s = %+v, want a unique one inside 10.64.0.0/10", id, s)
		}
		seen[s.Cidr4], seen[s.Cidr6] = true, true
	}
}

func TestSecurityGroups(t *testing.T) {
	for _, c := range []struct {
		rule  SecurityRule
		field string
	}{
		{SecurityRule{Direction: Ingress, Protocol: ProtocolTCP, Ports: "1-65535", Cidr: "0.0.0.0/0"}, ""},
		{SecurityRule{Direction: Egress, Protocol: ProtocolAny, Group: "sg-1"}, ""},
		{SecurityRule{Direction: "in", Protocol: ProtocolAny}, "spec.rules[0].direction"},
		{SecurityRule{Direction: Ingress, Protocol: "sctp"}, "spec.rules[0].protocol"},
		{SecurityRule{Direction: Ingress, Protocol: ProtocolAny, Ports: "80"}, "spec.rules[0].ports"},
		{SecurityRule{Direction: Ingress, Protocol: ProtocolUDP, Ports: "80-79"}, "spec.rules[0].ports"},
		{SecurityRule{Direction: Ingress, Protocol: ProtocolTCP, Cidr: "10.0.0.1/8"}, "spec.rules[0].cidr"},
		{SecurityRule{Direction: Ingress, Protocol: ProtocolTCP, Cidr: "everywhere"}, "spec.rules[0].cidr"},
		{SecurityRule{Direction: Ingress, Protocol: ProtocolTCP, Cidr: "::/0", Group: "sg-1"}, "spec.rules[0].group"},
		{SecurityRule{Direction: Ingress, Protocol: ProtocolICMP, Cidr: "::/0"}, "spec.rules[0].protocol"},
	} {
		refused(t, c.field, c.field, ValidateSecurityGroup(SecurityGroupSpec{Rules: []SecurityRule{c.rule}}))
	}
	refused(t, "many", "spec.rules", ValidateSecurityGroup(SecurityGroupSpec{Rules: make([]SecurityRule, MaxRules+1)}))
	refused(t, "a project's", "", ValidateSecurityGroup(ProjectSecurityGroup("sg-1")))
}

func TestExternalNetworks(t *testing.T) {
	good := ExternalNetworkSpec{Cidr4: "203.0.113.0/24", Gateway4: "203.0.113.1", Ranges4: []string{"203.0.113.10-203.0.113.20", "203.0.113.30"}}
	for field, spoil := range map[string]func(*ExternalNetworkSpec){
		"":                     func(*ExternalNetworkSpec) {},
		"spec.cidr4":           func(s *ExternalNetworkSpec) { *s = ExternalNetworkSpec{} },
		"spec.vlan":            func(s *ExternalNetworkSpec) { s.Vlan = 4095 },
		"spec.gateway4":        func(s *ExternalNetworkSpec) { s.Gateway4 = "198.51.100.1" },
		"spec.ranges4[0]":      func(s *ExternalNetworkSpec) { s.Ranges4[0] = "203.0.113.20-203.0.113.10" },
		"spec.ranges4[1]":      func(s *ExternalNetworkSpec) { s.Ranges4[1] = "203.0.113.15-203.0.113.25" },
		"spec.cidr6":           func(s *ExternalNetworkSpec) { s.Ranges6 = []string{"fd00::1-fd00::2"} },
		"spec.physicalNetwork": func(s *ExternalNetworkSpec) { s.PhysicalNetwork = "Eth 0" },
	} {
		s := good
		s.Ranges4 = append([]string{}, good.Ranges4...)
		spoil(&s)
		refused(t, field, field, ValidateExternalNetwork(DefaultExternalNetwork(s)))
	}
	for _, r := range []string{"203.0.113.1-203.0.113.5", "203.0.113.0", "203.0.113.255", "203.0.112.9-203.0.113.9", "x"} {
		s := DefaultExternalNetwork(good)
		s.Ranges4 = []string{r}
		refused(t, r, "spec.ranges4[0]", ValidateExternalNetwork(s))
	}
}

func TestStorageSpecs(t *testing.T) {
	refused(t, "two sources", "spec.snapshot", ValidateVolume(VolumeSpec{Image: "i", Snapshot: "s"}))
	refused(t, "qos", "spec.qos.readIOPS", ValidateVolume(VolumeSpec{SizeBytes: 1 << 30, Qos: &VolumeQoS{ReadIOPS: -1}}))
	refused(t, "rollback", "spec.rollback.snapshot", ValidateVolume(VolumeSpec{SizeBytes: 1 << 30, Rollback: &VolumeRollback{Count: 1}}))
	old := VolumeSpec{SizeBytes: 2 << 30, Instance: "ins-1", Rollback: &VolumeRollback{Snapshot: "s", Count: 2}}
	for field, change := range map[string]func(*VolumeSpec){
		"":                    func(s *VolumeSpec) { s.Instance = "" },
		"spec.instance":       func(s *VolumeSpec) { s.Instance = "ins-2" },
		"spec.sizeBytes":      func(s *VolumeSpec) { s.SizeBytes = 1 << 30 },
		"spec.encrypted":      func(s *VolumeSpec) { s.Encrypted = true },
		"spec.snapshot":       func(s *VolumeSpec) { s.Snapshot = "s" },
		"spec.backup":         func(s *VolumeSpec) { s.Backup = "b" },
		"spec.rollback.count": func(s *VolumeSpec) { s.Rollback = nil },
	} {
		s := old
		change(&s)
		refused(t, field, field, ChangeVolume(old, s))
	}
	target := BackupTargetSpec{Directory: "/srv/backup", Password: "0123456789ab"}
	for field, spoil := range map[string]func(*BackupTargetSpec){
		"":                 func(*BackupTargetSpec) {},
		"spec.directory":   func(s *BackupTargetSpec) { s.Directory = "srv/../x" },
		"spec.password":    func(s *BackupTargetSpec) { s.Password = "short" },
		"spec.s3.endpoint": func(s *BackupTargetSpec) { s.Directory, s.S3 = "", &S3Target{Endpoint: "ftp://x", Bucket: "abc"} },
		"spec.s3.bucket": func(s *BackupTargetSpec) {
			s.Directory, s.S3 = "", &S3Target{Endpoint: "https://s3.example", Bucket: "../x"}
		},
	} {
		s := target
		spoil(&s)
		refused(t, field, field, ValidateBackupTarget(s))
	}
	// Secrets that are left out are kept, and the password cannot be changed.
	was := BackupTargetSpec{S3: &S3Target{Endpoint: "https://a.example", Bucket: "abc", SecretKey: "k"}, Password: target.Password}
	now, err := ChangeBackupTarget(was, BackupTargetSpec{S3: &S3Target{Endpoint: "https://b.example", Bucket: "abc"}})
	if err != nil || now.S3.SecretKey != "k" || now.Password != was.Password || was.S3.Endpoint != "https://a.example" {
		t.Errorf("ChangeBackupTarget without secrets = %+v, %v; want the former secrets and an unchanged old spec", now, err)
	}
	_, err = ChangeBackupTarget(was, BackupTargetSpec{S3: was.S3, Password: strings.Repeat("x", 20)})
	refused(t, "another password", "spec.password", err)
	refused(t, "another ceph", "meta.name", ValidateCephCluster("ceph2", DefaultCephCluster(CephClusterSpec{})))
	refused(t, "no copies", "spec.replicas", ValidateCephCluster("ceph", DefaultCephCluster(CephClusterSpec{Replicas: 6})))
}

// TestTunneledMTU checks what is left of a packet in a tunnel, in plain and encrypted.
func TestTunneledMTU(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	for _, c := range []struct {
		from      netip.Addr
		mtu       int
		encrypted bool
		want      int64
	}{
		{four, 1500, false, DefaultMTU}, {six, 1500, false, 1422}, {four, 1500, true, 1382}, {six, 1500, true, 1342}, {four, 9000, true, 8882}, {four, 100, true, 0},
	} {
		if got := TunneledMTU(c.from, c.mtu, c.encrypted); got != c.want {
			t.Errorf("TunneledMTU(%s, %d, %t) = %d, want %d", c.from, c.mtu, c.encrypted, got, c.want)
		}
	}
}
