package hypervisor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHostModel(t *testing.T) {
	const caps = `<domainCapabilities><cpu><mode name='host-passthrough' supported='yes'/>
<mode name='host-model' supported='yes'><model fallback='forbid'>EPYC-Milan</model><vendor>AMD</vendor><maxphysaddr mode='passthrough' limit='48'/>
<feature policy='require' name='x2apic'/><feature policy='disable' name='pcid'/></mode>
<mode name='custom' supported='yes'><model usable='yes'>EPYC</model></mode></cpu></domainCapabilities>`
	text, bits, err := HostModel(caps)
	if err != nil || bits != 48 {
		t.Fatalf("HostModel = %d address bits, %v, want 48", bits, err)
	}
	got, err := ParseCPU(text)
	want := CPU{Vendor: "AMD", Model: "EPYC-Milan", Features: []string{"x2apic"}, Disabled: []string{"pcid"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("ParseCPU: %v, mismatch (-want +got):\n%s", err, diff)
	}
	want.AddressBits = bits
	again, err := want.XML()
	if err != nil {
		t.Fatal(err)
	}
	if got, err = ParseCPU(again); err != nil || !cmp.Equal(want, got) {
		t.Errorf("ParseCPU of the CPU's own XML = %+v, %v, want %+v", got, err, want)
	}
	for _, none := range []string{`<domainCapabilities/>`, `<domainCapabilities><cpu><mode name='host-model' supported='no'/></cpu></domainCapabilities>`} {
		if text, _, err := HostModel(none); text != "" || err != nil {
			t.Errorf("HostModel(%s) = %q, %v, want no model and no error", none, text, err)
		}
	}
	if _, _, err := HostModel("<a"); err == nil {
		t.Error("HostModel of invalid XML = nil, want an error")
	}
	if c := CPUOf(want.API()); !cmp.Equal(c, want) {
		t.Errorf("CPUOf(want.API()) = %+v, want %+v", c, want)
	}
}
