package hardware

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/bootloader"
)

// files are the files of a simulated machine: contents by path. A content that
// begins with "-> " is a link's target; "-" alone removes the file.
type files map[string]string

// server is a machine on which every check succeeds.
var server = files{
	"proc/cpuinfo":                            "processor\t: 0\nvendor_id\t: GenuineIntel\nmicrocode\t: 0xd000404\nflags\t\t: fpu vmx ept\n\nprocessor\t: 1\nvendor_id\t: GenuineIntel\nmicrocode\t: 0xd000404\nflags\t\t: fpu vmx ept\n",
	"proc/meminfo":                            "MemTotal:       1 kB\nHardwareCorrupted:     0 kB\n",
	"proc/cmdline":                            "BOOT_IMAGE=/vmlinuz root=PARTUUID=1 ro quiet console=tty0\n",
	"dev/kvm":                                 "",
	"dev/ipmi0":                               "",
	"usr/lib/firmware/intel-ucode/06-6a-06":   "x",
	"sys/firmware/acpi/tables/DMAR":           "x",
	secureBoot:                                "\x06\x00\x00\x00\x00",
	"sys/kernel/iommu_groups/0/type":          "DMA",
	"sys/kernel/iommu_groups/1/type":          "DMA",
	"sys/devices/system/node/node0/cpulist":   "0\n",
	"sys/devices/system/node/node0/meminfo":   "Node 0 MemTotal:       134217728 kB\nNode 0 MemFree: 1 kB\n",
	"sys/devices/system/node/node1/cpulist":   "1\n",
	"sys/devices/system/node/node1/meminfo":   "Node 1 MemTotal:       134217728 kB\n",
	"sys/devices/system/node/possible":        "0-1\n",
	"sys/devices/system/edac/mc/mc0/ce_count": "0\n",
	"sys/devices/system/edac/mc/mc0/ue_count": "0\n",
	"sys/class/watchdog/watchdog0/identity":   "iTCO_wdt\n",
	"sys/class/net/eno1/type":                 "1\n",
	"sys/class/net/eno1/device/driver":        "-> ../../../bus/pci/drivers/ixgbe",
	"sys/class/net/eno1/carrier":              "1\n",
	"sys/class/net/eno1/speed":                "10000\n",
	"sys/class/net/eno1/duplex":               "full\n",
	"sys/class/net/lo/type":                   "772\n",
	"sys/bus/pci/devices/0000:65:00.0/vendor": "0x10de\n",
	"sys/bus/pci/devices/0000:65:00.0/class":  "0x030200\n",
	"sys/bus/pci/devices/0000:65:00.0/driver": "-> ../../../../bus/pci/drivers/nvidia",
	"sys/bus/pci/devices/0000:00:1f.0/vendor": "0x8086\n",
	"sys/bus/pci/devices/0000:00:1f.0/class":  "0x060100\n",
	"sys/firmware/dmi/entries/38-0/raw":       "x",
	armor + "parameters/enabled":              "Y\n",
	loader:                                    "-> /usr/lib/systemd/system/basalt-apparmor.service",
	profiles:                                  "basalt-image (enforce)\nbasalt-vgpu (enforce)\nbasalt-worker (enforce)\nlibvirtd (enforce)\n",
	md + "level":                              "raid1\n",
	md + "array_state":                        "active\n",
	md + "raid_disks":                         "2\n",
	md + "degraded":                           "0\n",
	md + "sync_action":                        "idle\n",
	md + "sync_completed":                     "none\n",
	md + "dev-sda3/state":                     "in_sync\n",
	md + "dev-sdb3/state":                     "in_sync\n",
}

// with returns the machine with some files changed.
func (m files) with(change files) fstest.MapFS {
	all := maps.Clone(m)
	for name, content := range change {
		if content != "-" {
			all[name] = content
			continue
		}
		maps.DeleteFunc(all, func(have, _ string) bool { return have == name || strings.HasPrefix(have, name+"/") })
	}
	out := fstest.MapFS{}
	for name, content := range all {
		if to, ok := strings.CutPrefix(content, "-> "); ok {
			out[name] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
			continue
		}
		out[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
	}
	return out
}

const healthy = `{"model_name":"Fast","smart_status":{"passed":true}}`

// well returns facts about that machine with which every check succeeds.
func well() Facts {
	current := bootloader.Prints{Source: "s", BIOS: "b", EFI: "e"}
	return Facts{BootLoader: BootLoader{State: bootloader.State{
		Source: "s", Disks: []bootloader.Disk{{Name: "sda", ID: "1", BIOS: "b", EFI: "e"}}, Record: bootloader.Record{Disks: map[string]bootloader.Prints{"1": current}},
	}}, KVM: Outcome{Tried: true}, Accelerator: "kvm", Disks: []DiskReport{{Device: "nvme0n1", Output: []byte(healthy)}},
		Clock: Clock{Known: true, Synchronized: true, OffsetKnown: true, Offset: time.Second},
		Paths: []Path{{Node: "n2", Address: "192.0.2.2", Interface: "eno1", LocalMTU: 9000, MTU: 9000}}}
}

func TestAllWell(t *testing.T) {
	f := well()
	f.FS = server.with(nil)
	all := Checks(f)
	if len(all) != 18 {
		t.Errorf("%d checks, want 18", len(all))
	}
	for _, c := range all {
		if c.State != api.HardwareOK || c.Found == "" || c.Meaning != "" || c.Advice != "" {
			t.Errorf("check %s = %+v, want ok with findings only", c.ID, c)
		}
	}
}

const (
	armor    = "sys/module/apparmor/"
	profiles = "sys/kernel/security/apparmor/profiles"

	md      = "sys/block/md127/md/"
	pages2M = "sys/kernel/mm/hugepages/hugepages-2048kB/"
	pages1G = "sys/kernel/mm/hugepages/hugepages-1048576kB/"
	amd     = "vendor_id : AuthenticAMD\nmicrocode : 0xa0011d1\nflags : fpu svm\n"
	noVMX   = "vendor_id : GenuineIntel\nmicrocode : 0x1\nflags : fpu\n"
	virtual = "vendor_id : GenuineIntel\nmicrocode : 0x1\nflags : fpu hypervisor\n"
)

// TestChecks changes one thing of the machine in each case, and checks what is
// reported.
func TestChecks(t *testing.T) {
	kvmOff := files{"dev/kvm": "-", "proc/cpuinfo": noVMX}
	disk := func(raw string) func(*Facts) {
		return func(f *Facts) { f.Disks = []DiskReport{{Device: "sda", Output: []byte(raw)}} }
	}
	for name, x := range map[string]struct {
		files  files
		change func(*Facts)
		id     api.HardwareCheckID
		state  api.HardwareState
		words  string // of all texts
	}{
		"KVM off in firmware":          {kvmOff, func(f *Facts) { f.KVM = Outcome{} }, api.HardwareKVM, api.HardwareFailed, "Intel Virtualization Technology"},
		"KVM off in firmware, allowed": {kvmOff, func(f *Facts) { f.KVM, f.AllowEmulation = Outcome{}, true }, api.HardwareKVM, api.HardwareWarning, "this node allows that"},
		"SVM off in firmware":          {files{"dev/kvm": "-", "proc/cpuinfo": strings.Replace(amd, "svm", "", 1)}, nil, api.HardwareKVM, api.HardwareFailed, "SVM Mode"},
		"no nested virtualization":     {files{"dev/kvm": "-", "proc/cpuinfo": virtual}, nil, api.HardwareKVM, api.HardwareFailed, "nested virtualization"},
		"module not loaded":            {files{"dev/kvm": "-"}, nil, api.HardwareKVM, api.HardwareFailed, "modprobe kvm_intel"},
		"nothing known of processor":   {files{"dev/kvm": "-", "proc/cpuinfo": "-"}, nil, api.HardwareKVM, api.HardwareFailed, "cannot be read"},
		"no machine can be made":       {nil, func(f *Facts) { f.KVM.Err = errors.New("device or resource busy") }, api.HardwareKVM, api.HardwareFailed, "busy"},
		"no guest boots":               {nil, func(f *Facts) { f.Accelerator = "tcg" }, api.HardwareKVM, api.HardwareFailed, "no guest boots"},
		"KVM not tried":                {nil, func(f *Facts) { f.KVM, f.Accelerator = Outcome{}, "" }, api.HardwareKVM, api.HardwareUnknown, "root"},
		"KVM of AMD":                   {files{"proc/cpuinfo": amd}, nil, api.HardwareKVM, api.HardwareOK, "AMD-V"},

		"no microcode package":     {files{"usr/lib/firmware/intel-ucode": "-"}, nil, api.HardwareMicrocode, api.HardwareWarning, "intel-microcode is not installed"},
		"no microcode package AMD": {files{"proc/cpuinfo": amd}, nil, api.HardwareMicrocode, api.HardwareWarning, "amd64-microcode is not installed"},
		"microcode of AMD":         {files{"proc/cpuinfo": amd, "lib/firmware/amd-ucode/x": "x"}, nil, api.HardwareMicrocode, api.HardwareOK, "0xa0011d1"},
		"revisions differ":         {files{"proc/cpuinfo": noVMX + strings.Replace(noVMX, "0x1", "0x2", 1)}, nil, api.HardwareMicrocode, api.HardwareWarning, "0x1; 0x2"},
		"no revision":              {files{"proc/cpuinfo": "flags : fpu\n"}, nil, api.HardwareMicrocode, api.HardwareUnknown, "no revision"},
		"microcode of a guest":     {files{"proc/cpuinfo": virtual}, nil, api.HardwareMicrocode, api.HardwareOK, "its host"},

		"BIOS":                     {files{"sys/firmware/efi": "-"}, nil, api.HardwareFirmware, api.HardwareOK, "BIOS"},
		"no firmware":              {files{"sys/firmware": "-"}, nil, api.HardwareFirmware, api.HardwareUnknown, "no firmware"},
		"Secure Boot on":           {files{secureBoot: "\x06\x00\x00\x00\x01"}, nil, api.HardwareFirmware, api.HardwareOK, "Secure Boot on"},
		"Secure Boot without word": {files{secureBoot: "\x06"}, nil, api.HardwareFirmware, api.HardwareOK, "does not say"},
		"Secure Boot and a GPU":    {files{secureBoot: "\x06\x00\x00\x00\x01", "sys/bus/pci/devices/0000:65:00.0/driver": "-"}, nil, api.HardwareFirmware, api.HardwareWarning, "signed"},

		"IOMMU unused":      {files{"sys/kernel/iommu_groups": "-"}, nil, api.HardwareIOMMU, api.HardwareWarning, "intel_iommu=on"},
		"IOMMU unused, AMD": {files{"sys/kernel/iommu_groups": "-", "sys/firmware/acpi/tables/DMAR": "-", "sys/firmware/acpi/tables/IVRS": ""}, nil, api.HardwareIOMMU, api.HardwareWarning, "amd_iommu=on"},
		"no IOMMU":          {files{"sys/kernel/iommu_groups": "-", "sys/firmware/acpi/tables/DMAR": "-"}, nil, api.HardwareIOMMU, api.HardwareWarning, "VT-d"},
		"IOMMU of a guest":  {files{"sys/kernel/iommu_groups": "-", "proc/cpuinfo": virtual}, nil, api.HardwareIOMMU, api.HardwareOK, "virtual machine"},

		"processor without memory":       {files{"sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 0 kB\n"}, nil, api.HardwareNUMA, api.HardwareWarning, "no memory of its own"},
		"huge pages":                     {files{pages2M + "nr_hugepages": "512\n", pages2M + "free_hugepages": "256\n", "proc/meminfo": "MemTotal: 8388608 kB\n"}, nil, api.HardwareHugePages, api.HardwareOK, "1 GiB in pages of 2 MiB, 0.5 GiB free"},
		"fewer huge pages than asked":    {files{pages1G + "nr_hugepages": "3\n", pages1G + "free_hugepages": "3\n", "proc/cmdline": "ro hugepagesz=1G hugepages=0:2,1:2\n"}, nil, api.HardwareHugePages, api.HardwareWarning, "asks for 4 GiB in pages of 1 GiB"},
		"huge pages of an odd size":      {files{"proc/cmdline": "ro hugepagesz=16M hugepages=9\n"}, nil, api.HardwareHugePages, api.HardwareOK, "none are reserved"},
		"huge pages of all memory":       {files{pages2M + "nr_hugepages": "2000\n", "proc/meminfo": "MemTotal: 4194304 kB\n"}, nil, api.HardwareHugePages, api.HardwareWarning, "of 4 GiB of memory"},
		"a number of pages that is none": {files{pages2M + "nr_hugepages": "99999999999999\n"}, nil, api.HardwareHugePages, api.HardwareOK, "none are reserved"},
		"uneven memory":                  {files{"sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 33554432 kB\n"}, nil, api.HardwareNUMA, api.HardwareWarning, "node1 32 GiB"},
		"no NUMA":                        {files{"sys/devices/system/node": "-"}, nil, api.HardwareNUMA, api.HardwareUnknown, "no NUMA"},

		"AppArmor off":               {files{armor + "parameters/enabled": "N\n", profiles: "-"}, nil, api.HardwareAppArmor, api.HardwareOK, "is off"},
		"no AppArmor":                {files{armor + "parameters/enabled": "-", profiles: "-"}, nil, api.HardwareAppArmor, api.HardwareOK, "is off"},
		"profiles not wanted":        {files{loader: "-", profiles: ""}, nil, api.HardwareAppArmor, api.HardwareOK, "is not enabled"},
		"profiles unreadable":        {files{profiles: "-"}, nil, api.HardwareAppArmor, api.HardwareUnknown, "as root"},
		"no profiles":                {files{profiles: ""}, nil, api.HardwareAppArmor, api.HardwareWarning, "basalt-image is not loaded; basalt-vgpu is not loaded; basalt-worker is not loaded"},
		"a profile that only logs":   {files{profiles: "basalt-image (enforce)\nbasalt-vgpu (complain)\nbasalt-worker (enforce)\n"}, nil, api.HardwareAppArmor, api.HardwareWarning, "basalt-vgpu is in mode complain"},
		"no mirror":                  {files{"sys/block/md127": "-"}, nil, api.HardwareMirror, api.HardwareOK, "no mirrored disks"},
		"first copy":                 {files{md + "sync_action": "resync\n", md + "sync_completed": "100 / 200\n"}, nil, api.HardwareMirror, api.HardwareOK, "first time 50 %"},
		"a disk is missing":          {files{md + "degraded": "1\n", md + "dev-sdb3": "-"}, nil, api.HardwareMirror, api.HardwareFailed, "md127 has 1 of 2 disks (sda3)"},
		"a disk has failed":          {files{md + "degraded": "1\n", md + "dev-sdb3/state": "faulty\n"}, nil, api.HardwareMirror, api.HardwareFailed, "1 of 2 disks (sda3)"},
		"a new disk":                 {files{md + "degraded": "1\n", md + "sync_action": "recover\n", md + "sync_completed": "1 / 4\n"}, nil, api.HardwareMirror, api.HardwareWarning, "new disk: md127 25 %"},
		"an array that is not whole": {files{md + "array_state": "inactive\n"}, nil, api.HardwareMirror, api.HardwareWarning, "not started: md127"},
		"an array without mirror":    {files{md + "level": "raid0\n", md + "degraded": "1\n"}, nil, api.HardwareMirror, api.HardwareOK, "no mirrored disks"},
		"progress that is none":      {files{md + "sync_action": "resync\n", md + "sync_completed": "9 / 0\n"}, nil, api.HardwareMirror, api.HardwareOK, "first time"},

		"a disk without a loader":   {nil, func(f *Facts) { f.BootLoader.State.Disks[0].EFI = "" }, api.HardwareBootLoader, api.HardwareFailed, "sda has no boot loader for UEFI"},
		"an older loader":           {nil, func(f *Facts) { f.BootLoader.State.Source = "new" }, api.HardwareBootLoader, api.HardwareWarning, "sda has boot loaders of an earlier GRUB"},
		"a disk without an entry":   {nil, func(f *Facts) { f.BootLoader.State.UEFI = true }, api.HardwareBootLoader, api.HardwareWarning, "sda has no entry"},
		"a loader that is not read": {nil, func(f *Facts) { f.BootLoader.State.Disks[0].Err = errors.New("input/output error") }, api.HardwareBootLoader, api.HardwareUnknown, "input/output error"},
		"loaders that are not read": {nil, func(f *Facts) { f.BootLoader.Err = errors.New("permission denied") }, api.HardwareBootLoader, api.HardwareUnknown, "as root"},
		"not an installed node":     {nil, func(f *Facts) { f.BootLoader.Err = bootloader.ErrNone }, api.HardwareBootLoader, api.HardwareOK, "not installed by"},

		"corrected errors": {files{"sys/devices/system/edac/mc/mc0/ce_count": "7\n"}, nil, api.HardwareMemory, api.HardwareWarning, "7 corrected"},
		"lost memory":      {files{"sys/devices/system/edac/mc/mc0/ue_count": "1\n"}, nil, api.HardwareMemory, api.HardwareFailed, "could not be corrected"},
		"broken pages":     {files{"proc/meminfo": "HardwareCorrupted:     8 kB\n"}, nil, api.HardwareMemory, api.HardwareFailed, "8 KiB"},
		"no ECC":           {files{"sys/devices/system/edac": "-"}, nil, api.HardwareMemory, api.HardwareUnknown, "without ECC"},
		"memory of guests": {files{"sys/devices/system/edac": "-", "proc/cpuinfo": virtual}, nil, api.HardwareMemory, api.HardwareOK, "virtual machine"},

		"nomodeset":       {files{"proc/cmdline": "ro nomodeset quiet\n"}, nil, api.HardwareKernelArgs, api.HardwareWarning, "no graphics driver"},
		"mem= and nosmt":  {files{"proc/cmdline": "mem=4G nosmt\n"}, nil, api.HardwareKernelArgs, api.HardwareWarning, "mem=4G; nosmt"},
		"memtest is none": {files{"proc/cmdline": "memtest=1 nosmtp\n"}, nil, api.HardwareKernelArgs, api.HardwareOK, "nothing"},
		"no command line": {files{"proc/cmdline": "-"}, nil, api.HardwareKernelArgs, api.HardwareUnknown, "cannot be read"},

		"no watchdog":    {files{"sys/class/watchdog": "-"}, nil, api.HardwareWatchdog, api.HardwareWarning, "iTCO_wdt"},
		"softdog":        {files{"sys/class/watchdog/watchdog0/identity": "Software Watchdog\n"}, nil, api.HardwareWatchdog, api.HardwareWarning, "softdog, which"},
		"softdog before": {files{"sys/class/watchdog/watchdog0/identity": "Software Watchdog\n", "sys/class/watchdog/watchdog1/identity": "iTCO_wdt\n"}, nil, api.HardwareWatchdog, api.HardwareWarning, "comes before watchdog1 (iTCO_wdt)"},

		"no smartctl":      {nil, func(f *Facts) { f.Disks = nil }, api.HardwareDisks, api.HardwareUnknown, "smartmontools"},
		"no disks":         {nil, func(f *Facts) { f.Disks = []DiskReport{} }, api.HardwareDisks, api.HardwareUnknown, "no disks"},
		"a disk fails":     {nil, disk(`{"smart_status":{"passed":false}}`), api.HardwareDisks, api.HardwareFailed, "sda reports"},
		"critical warning": {nil, disk(`{"smart_status":{"passed":true},"nvme_smart_health_information_log":{"critical_warning":4}}`), api.HardwareDisks, api.HardwareFailed, "0x4"},
		"worn":             {nil, disk(`{"smart_status":{"passed":true},"nvme_smart_health_information_log":{"percentage_used":103}}`), api.HardwareDisks, api.HardwareWarning, "103 %"},
		"no spare":         {nil, disk(`{"smart_status":{"passed":true},"nvme_smart_health_information_log":{"available_spare":5,"available_spare_threshold":10}}`), api.HardwareDisks, api.HardwareWarning, "5 % spare"},
		"media errors":     {nil, disk(`{"smart_status":{"passed":true},"nvme_smart_health_information_log":{"media_errors":2}}`), api.HardwareDisks, api.HardwareWarning, "2 media"},
		"pending":          {nil, disk(`{"smart_status":{"passed":true},"ata_smart_attributes":{"table":[{"id":9,"raw":{"value":5}},{"id":197,"raw":{"value":3}}]}}`), api.HardwareDisks, api.HardwareWarning, "3 pending"},
		"no SMART":         {nil, disk(`{}`), api.HardwareDisks, api.HardwareUnknown, "has no SMART"},
		"smartctl babbles": {nil, disk(strings.Repeat("x", maxSMART+1)), api.HardwareDisks, api.HardwareUnknown, "too long"},
		"smartctl lies":    {nil, disk(`{"smart_status":7}`), api.HardwareDisks, api.HardwareUnknown, "cannot be read"},
		"smartctl hangs":   {nil, func(f *Facts) { f.Disks[0].Err = errors.New("too long") }, api.HardwareDisks, api.HardwareUnknown, "no answer"},
		"one of two failed": {nil, func(f *Facts) {
			f.Disks = append(f.Disks, DiskReport{Device: "sdb", Output: []byte(`{"smart_status":{"passed":false}}`)})
		}, api.HardwareDisks, api.HardwareFailed, "sdb reports"},

		"no link":        {files{"sys/class/net/eno1/carrier": "0\n"}, nil, api.HardwareNICs, api.HardwareWarning, "cannot reach any other machine"},
		"100 Mbit/s":     {files{"sys/class/net/eno1/speed": "100\n"}, nil, api.HardwareNICs, api.HardwareWarning, "eno1 100 Mbit/s"},
		"half duplex":    {files{"sys/class/net/eno1/duplex": "half\n"}, nil, api.HardwareNICs, api.HardwareWarning, "half duplex"},
		"speed unknown":  {files{"sys/class/net/eno1/speed": "-1\n"}, nil, api.HardwareNICs, api.HardwareOK, "eno1 of unknown speed"},
		"wireless alone": {files{"sys/class/net/eno1/phy80211": ""}, nil, api.HardwareNICs, api.HardwareUnknown, "no wired"},

		"narrow path":   {nil, func(f *Facts) { f.Paths[0].MTU = 1500 }, api.HardwarePathMTU, api.HardwareWarning, "1500 of 9000 bytes of eno1"},
		"silent path":   {nil, func(f *Facts) { f.Paths[0].MTU = 0 }, api.HardwarePathMTU, api.HardwareUnknown, "no answer from n2"},
		"no ping":       {nil, func(f *Facts) { f.Paths[0].Err = errors.New("no ping") }, api.HardwarePathMTU, api.HardwareUnknown, "not installed"},
		"a node alone":  {nil, func(f *Facts) { f.Paths = nil }, api.HardwarePathMTU, api.HardwareOK, "no other nodes"},
		"one is silent": {nil, func(f *Facts) { f.Paths = append(f.Paths, Path{Node: "n3", Address: "a"}) }, api.HardwarePathMTU, api.HardwareOK, "n2 (192.0.2.2) 9000"},

		"an hour off":      {nil, func(f *Facts) { f.Clock.Offset = -time.Hour }, api.HardwareClock, api.HardwareFailed, "1h0m0s behind the leader's"},
		"five seconds off": {nil, func(f *Facts) { f.Clock.Offset = 5 * time.Second }, api.HardwareClock, api.HardwareWarning, "5s ahead of the leader's"},
		"no time server":   {nil, func(f *Facts) { f.Clock.Synchronized = false }, api.HardwareClock, api.HardwareWarning, "not synchronized"},
		"clock unknown":    {nil, func(f *Facts) { f.Clock = Clock{} }, api.HardwareClock, api.HardwareUnknown, "does not say"},

		"no GPU":          {files{"sys/bus/pci/devices/0000:65:00.0": "-"}, nil, api.HardwareGPUs, api.HardwareOK, "no NVIDIA GPU"},
		"undriven GPU":    {files{"sys/bus/pci/devices/0000:65:00.0/driver": "-"}, nil, api.HardwareGPUs, api.HardwareWarning, "0000:65:00.0 without a driver"},
		"nouveau":         {files{"sys/bus/pci/devices/0000:65:00.0/driver": "-> ../nouveau"}, nil, api.HardwareGPUs, api.HardwareWarning, "driven by nouveau"},
		"no PCI bus":      {files{"sys/bus": "-"}, nil, api.HardwareGPUs, api.HardwareOK, "no NVIDIA GPU"},
		"virtual GPU":     {files{"sys/bus/pci/devices/0000:65:00.0/driver": "-", "sys/bus/pci/devices/0000:65:00.0/physfn": "-> ../x"}, nil, api.HardwareGPUs, api.HardwareOK, "no NVIDIA GPU"},
		"NVIDIA's bridge": {files{"sys/bus/pci/devices/0000:65:00.0/class": "0x068000"}, nil, api.HardwareGPUs, api.HardwareOK, "no NVIDIA GPU"},

		"BMC without driver": {files{"dev/ipmi0": "-"}, nil, api.HardwareBMC, api.HardwareWarning, "modprobe ipmi_si"},
		"no BMC":             {files{"dev/ipmi0": "-", "sys/firmware/dmi": "-"}, nil, api.HardwareBMC, api.HardwareOK, "no management controller"},
	} {
		t.Run(name, func(t *testing.T) {
			f := well()
			f.FS = server.with(x.files)
			if x.change != nil {
				x.change(&f)
			}
			all := Checks(f)
			i := slices.IndexFunc(all, func(c api.HardwareCheck) bool { return c.ID == x.id })
			c := all[i]
			if c.State != x.state || !strings.Contains(c.Found+"\n"+c.Meaning+"\n"+c.Advice, x.words) {
				t.Errorf("check %s = %+v, want %s with a text containing %q", x.id, c, x.state, x.words)
			}
			if bad := c.State == api.HardwareWarning || c.State == api.HardwareFailed; bad && (c.Meaning == "" || c.Advice == "") {
				t.Errorf("check %s = %+v, want a meaning and an advice", x.id, c)
			}
			if got := len(Failed(all)) > 0; got != (x.state == api.HardwareFailed) {
				t.Errorf("Failed reports failed checks: %v, want %v", got, x.state == api.HardwareFailed)
			}
		})
	}
}

// TestHostile checks that the contents of a machine's files and devices are
// reported within limits and without control characters.
func TestHostile(t *testing.T) {
	long := strings.Repeat("\x1b[31m\xff…", 1000)
	f := well()
	f.FS = server.with(files{"sys/class/watchdog/watchdog0/identity": long, "proc/cpuinfo": "microcode : " + long + "\nflags : " + long, "proc/cmdline": "mem=" + long,
		"sys/devices/system/node/node0/meminfo": "MemTotal: 99999999999999999999 kB", "sys/devices/system/edac/mc/mc0/ce_count": "-5", "sys/class/net/eno1/speed": long})
	f.Disks = []DiskReport{{Device: long, Output: []byte(long)}}
	f.Paths = []Path{{Node: long, Address: long, Interface: long, MTU: 1, LocalMTU: 2}}
	for _, c := range Checks(f) {
		for _, text := range []string{c.Found, c.Meaning, c.Advice} {
			if len(text) > maxText || !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\n\x00") {
				t.Errorf("check %s: %q has %d bytes, want at most %d printable ones", c.ID, text, len(text), maxText)
			}
		}
	}
}

func TestLargest(t *testing.T) {
	for _, x := range []struct{ local, path, want, tries int }{
		{9000, 9000, 9000, 1}, {9000, 1500, 1500, 3}, {1500, 1500, 1500, 1}, {1500, 1450, 1400, 3}, {1400, 500, 0, 2}, {1500, 600, 576, 4}, {65536, 9000, 9000, 3},
	} {
		tries := 0
		got, err := largest(x.local, func(size int) (bool, error) { tries++; return size <= x.path, nil })
		if err != nil || got != x.want || tries != x.tries {
			t.Errorf("interface with %d bytes, path with %d: largest = %d, %v after %d tries, want %d after %d", x.local, x.path, got, err, tries, x.want, x.tries)
		}
	}
	if _, err := largest(1500, func(int) (bool, error) { return false, errors.New("no ping") }); err == nil {
		t.Error("largest without ping returned nil, want its error")
	}
}

// TestProbe probes this machine, whatever it is: each check has a finding, and none
// hangs.
func TestProbe(t *testing.T) {
	all := Checks(Probe(t.Context(), Options{Targets: []Target{{"n2", "127.0.0.1"}, {"n3", "no address"}}}))
	for _, c := range all {
		if c.Found == "" {
			t.Errorf("check %s of this machine has no finding, want one", c.ID)
		}
	}
	if out := tryKVM(os.DevNull); !out.Tried || out.Err == nil {
		t.Errorf("tryKVM(/dev/null) = %+v, want an error", out)
	}
	if out := tryKVM(t.TempDir() + "/none"); out.Tried {
		t.Errorf("tryKVM of a missing file = %+v, want it not tried", out)
	}
}

// TestRun checks that a program which writes endlessly, or hangs, is stopped.
func TestRun(t *testing.T) {
	out, err := run(t.Context(), 300*time.Millisecond, 100, "sh", "-c", "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done")
	if err == nil || len(out) != 100 {
		t.Errorf("run of an endless program = %d bytes, error %v; want 100 bytes and an error", len(out), err)
	}
}

func FuzzSMART(f *testing.F) {
	for _, s := range []string{healthy, `{"smart_status":{"passed":false}}`, `{"nvme_smart_health_information_log":{"critical_warning":-1}}`, `{"ata_smart_attributes":{"table":[{"id":5,"raw":{"value":-9223372036854775808}}]}}`, "{", "\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h := parseSMART(raw)
		if h.state == "" || h.state != api.HardwareOK && h.why == "" || len(h.why) > maxText {
			t.Errorf("health of %q = %+v, want a state and a reason", raw, h)
		}
	})
}
