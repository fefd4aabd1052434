package server_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func TestWhatIsUsedIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	in := must(t, ret(w.instance(w.op, "demo"))).v
	flavor := must(t, ret(client.Of[api.Flavor](w.op).Get(ctx, "small", client.Query{}))).v
	image := must(t, ret(client.Of[api.Image](w.op).Get(ctx, "debian", client.Query{}))).v
	pool := must(t, ret(client.Of[api.GPUPool](w.op).Create(ctx, api.GPUPool{Meta: api.Meta{Name: "default"}}))).v
	book := must(t, ret(client.Of[api.PriceBook](w.op).Create(ctx, api.PriceBook{Meta: api.Meta{Name: "b"}, Spec: api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{}}}))).v
	must(t, ret(client.Of[api.Organization](w.op).Create(ctx, api.Organization{Meta: api.Meta{Name: "payer"}, Spec: api.OrganizationSpec{PriceBook: "b"}})))
	data := must(t, ret(client.Of[api.Volume](w.op).Create(ctx, api.Volume{Meta: api.Meta{Name: "data", Project: w.web}, Spec: api.VolumeSpec{SizeBytes: 1 << 20, Instance: "demo"}}))).v
	root := must(t, ret(client.Of[api.Volume](w.op).Get(ctx, in.Meta.ID+"-root", client.Query{}))).v
	deletes := map[string]func() error{
		"flavor":       func() error { _, err := client.Of[api.Flavor](w.op).Delete(ctx, flavor.Meta.ID); return err },
		"image":        func() error { _, err := client.Of[api.Image](w.op).Delete(ctx, image.Meta.ID); return err },
		"pool":         func() error { _, err := client.Of[api.GPUPool](w.op).Delete(ctx, pool.Meta.ID); return err },
		"price book":   func() error { _, err := client.Of[api.PriceBook](w.op).Delete(ctx, book.Meta.ID); return err },
		"project":      func() error { _, err := client.Of[api.Project](w.op).Delete(ctx, w.web); return err },
		"organization": func() error { _, err := client.Of[api.Organization](w.op).Delete(ctx, w.acme); return err },
		"root volume":  func() error { _, err := client.Of[api.Volume](w.op).Delete(ctx, root.Meta.ID); return err },
		"data volume":  func() error { _, err := client.Of[api.Volume](w.op).Delete(ctx, data.Meta.ID); return err },
	}
	for name, del := range deletes {
		if err := del(); api.CodeOf(err) != api.CodeInUse {
			t.Errorf("delete the %s in use: %v, want %s", name, err, api.CodeInUse)
		}
	}
	must(t, ret(client.Of[api.Instance](w.op).Delete(ctx, in.Meta.ID)))
	off := must(t, ret(client.Of[api.Volume](w.op).Get(ctx, data.Meta.ID, client.Query{}))).v
	if off.Spec.Instance != "" || off.Meta.DeletedAt != nil {
		t.Errorf("data volume after its instance was deleted = %+v, want it detached and kept", off)
	}
	if err := deletes["data volume"](); err != nil {
		t.Errorf("delete the detached data volume: %v", err)
	}
}

func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	post := func(name string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/v1/flavors", bytes.NewReader([]byte(`{"meta":{"name":"`+name+`"},"spec":{"vcpus":1,"memoryBytes":67108864}}`)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.Token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "once")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, b.String()
	}
	s1, b1 := post("tiny")
	s2, b2 := post("tiny")
	if s1 != 201 || s2 != 201 || b1 != b2 {
		t.Errorf("responses with one Idempotency-Key: %d %s, then %d %s; want 201 with the same body twice", s1, b1, s2, b2)
	}
}

func TestListsPage(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	member := w.as(api.RoleMember, w.acme, w.web)
	want := map[string]bool{"debian": true}
	for i := range 7 {
		name := string(rune('a' + i))
		project := []string{w.web, w.lab}[i%2]
		must(t, ret(client.Of[api.Image](w.op).Create(ctx, api.Image{Meta: api.Meta{Name: name, Project: project}, Spec: api.ImageSpec{Format: "raw"}})))
		if project == w.web {
			want[name] = true
		}
	}
	for _, limit := range []int{1, 2, 5, 100} {
		got := map[string]bool{}
		q := client.Query{Limit: limit}
		for pages := 0; pages < 20; pages++ {
			page := must(t, ret(client.Of[api.Image](member).Page(ctx, q))).v
			if len(page.Items) > limit {
				t.Fatalf("page with limit %d has %d items, want at most the limit", limit, len(page.Items))
			}
			for _, i := range page.Items {
				if got[i.Meta.Name] {
					t.Errorf("limit %d: image %s is listed twice", limit, i.Meta.Name)
				}
				got[i.Meta.Name] = true
			}
			if q.Continue = page.Continue; q.Continue == "" {
				break
			}
		}
		if len(got) != len(want) || !got["debian"] || got["b"] {
			t.Errorf("limit %d: images %v, want %v", limit, got, want)
		}
	}
	_, err := client.Of[api.Image](member).Page(ctx, client.Query{Limit: 1001})
	wantErr(t, err, api.CodeInvalid, "limit")
	_, err = client.Of[api.Image](member).Page(ctx, client.Query{Project: w.theirs})
	wantErr(t, err, api.CodeInvalid, "project")
}

func TestImages(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	member := w.as(api.RoleMember, w.acme, w.web)
	_, err := client.Of[api.Image](member).Create(ctx, api.Image{Meta: api.Meta{Name: "pub"}, Spec: api.ImageSpec{Format: "raw", Public: true}})
	wantErr(t, err, api.CodeForbidden, "spec.public")
	image := must(t, ret(client.Of[api.Image](member).Create(ctx, api.Image{Meta: api.Meta{Name: "own"}, Spec: api.ImageSpec{Format: "raw"}}))).v
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB: exceeds the limit of a JSON body
	ready, err := member.PutImageContent(ctx, image.Meta.ID, bytes.NewReader(data), int64(len(data)))
	if err != nil || ready.Status.Phase != api.ImageReady || !bytes.Equal(w.Node.Image(image.Meta.ID), data) {
		t.Fatalf("image after the upload = %+v, %v; want it ready with the same content", ready.Status, err)
	}
	_, err = member.PutImageContent(ctx, image.Meta.ID, bytes.NewReader(data), -1)
	wantErr(t, err, api.CodeState, "")
	public := must(t, ret(client.Of[api.Image](w.op).Get(ctx, "debian", client.Query{}))).v
	if !public.Spec.Public {
		t.Error("image of the cluster is not public, want it public")
	}
	_, err = member.PutImageContent(ctx, public.Meta.ID, bytes.NewReader(data), -1)
	wantErr(t, err, api.CodeForbidden, "")
	// The image's disk has 1 GiB, so no root volume may be smaller.
	_, err = client.Of[api.Instance](member).Create(ctx, api.Instance{Meta: api.Meta{Name: "small"}, Spec: api.InstanceSpec{Flavor: "small", Image: "own", RootBytes: 1 << 29}})
	wantErr(t, err, api.CodeInvalid, "spec.rootBytes")
	// A private image of another project is not found.
	theirs := w.as(api.RoleMember, w.other, w.theirs)
	_, err = client.Of[api.Instance](theirs).Create(ctx, api.Instance{Meta: api.Meta{Name: "x"}, Spec: api.InstanceSpec{Flavor: "small", Image: api.ImageID(image.Meta.ID)}})
	wantErr(t, err, api.CodeInvalid, "spec.image")
}

// TestUsage checks that usage is limited to what a key may see, and costs to keys that
// may see invoices.
func TestUsage(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	q := api.UsageQuery{From: from, To: from.AddDate(0, 1, 0)}
	viewer := w.as(api.RoleViewer, w.acme, w.web)
	page := must(t, ret(viewer.Usage(ctx, q))).v
	if len(page.Items) != 1 || string(page.Items[0].Project) != w.web || page.Items[0].Quantity != api.Units(7200) {
		t.Errorf("usage that a viewer sees = %+v, want one item of project %s with quantity 7200", page, w.web)
	}
	q.Project = w.lab
	_, err := viewer.Usage(ctx, q)
	wantErr(t, err, api.CodeInvalid, "project")
	q.Project = ""
	_, err = w.op.Usage(ctx, q)
	wantErr(t, err, api.CodeInvalid, "organization")
	q.Organization = w.other
	must(t, ret(w.op.Usage(ctx, q)))
	admin := w.as(api.RoleAdmin, w.acme, "")
	_, err = admin.Usage(ctx, q)
	wantErr(t, err, api.CodeInvalid, "organization")
	var file strings.Builder
	if err := admin.ExportUsage(ctx, "", q.From, q.To, "", &file); err != nil || file.String() != "format,organization\ncsv,"+w.acme+"\n" {
		t.Errorf("export = %q, error %v; want the organization's CSV", file.String(), err)
	}
	wantErr(t, admin.ExportUsage(ctx, w.other, q.From, q.To, "", &file), api.CodeNotFound, "")
	wantErr(t, viewer.ExportUsage(ctx, "", q.From, q.To, "", &file), api.CodeForbidden, "")
	e := must(t, ret(admin.ExplainInvoice(ctx, api.InvoiceQuestion{From: q.From, To: q.To, Line: "line-000000000001"}))).v
	if len(e.Hours) != 2 || e.Line.AmountMicros != 20000 {
		t.Errorf("explanation of a line = %+v, want 2 hours and 20000", e)
	}
	_, err = admin.ExplainInvoice(ctx, api.InvoiceQuestion{From: q.From, To: q.To, Line: "line-x"})
	wantErr(t, err, api.CodeNotFound, "line")
}

func TestRestOfTheServer(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	admin := w.as(api.RoleAdmin, w.acme, "")
	p := must(t, ret(admin.InvoicePreview(ctx, "", from, from.AddDate(0, 1, 0)))).v
	if string(p.Organization) != w.acme || len(p.Lines) != 1 || p.TotalMicros != 20000 {
		t.Errorf("invoice preview = %+v, want one line and a total of 20000 for %s", p, w.acme)
	}
	_, err := admin.InvoicePreview(ctx, w.other, from, from.AddDate(0, 1, 0))
	wantErr(t, err, api.CodeNotFound, "")
	_, err = admin.InvoicePreview(ctx, "", from, from)
	wantErr(t, err, api.CodeInvalid, "to")
	// Deleting a key ends its watch.
	key := must(t, ret(client.Of[api.APIKey](w.op).Create(ctx, api.APIKey{Meta: api.Meta{Name: "brief"}, Spec: api.APIKeySpec{Role: api.RoleOperator}}))).v
	deleted := false
	for _, err := range connect(t, w.Env, key.Secret).Watch(ctx, 0) {
		if err != nil {
			wantErr(t, err, api.CodeUnauthenticated, "")
			break
		}
		if !deleted {
			deleted = true
			must(t, ret(client.Of[api.APIKey](w.op).Delete(ctx, key.Meta.ID)))
		}
	}
}
