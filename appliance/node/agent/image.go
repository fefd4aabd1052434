package agent

import (
	"context"
	"errors"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// imageReconciler brings images in, and fetches those that this node needs.
type imageReconciler struct {
	*core
	reporter *reporter

	mu      sync.Mutex
	running map[string]bool // images being imported
}

// reconcile brings an image into the cluster, if that is this node's to
// do: one with a URL is fetched by the node that it is assigned to, one without
// waits for its bytes to be sent to any node (put). Then voters fetch a
// copy each, so that no dead node takes the only one with it; other nodes fetch
// what their volumes need (fetch.go).
//
//	Pending ─► Importing ─► Ready ─► deleted: every node its own copy; the one
//	               │          ▲     that brought it in takes the finalizer off,
//	               ▼          │     or when it is lost the one on duty
//	             Failed ──────┘ tried again (retry.go)
func (rec *imageReconciler) reconcile(ctx context.Context, id string) (time.Duration, error) {
	img, ok := get(rec.cache, rec.cache.images, id)
	if !ok {
		return 0, nil
	}
	if img.Meta.DeletedAt != nil {
		return rec.end(ctx, img)
	}
	if img.Status.Phase == api.ImageReady {
		return rec.copyToVoter(ctx, img)
	}
	mine := img.Assignment.Node == rec.o.NodeID || img.Assignment.Node == "" && rec.members.alone()
	if img.Spec.URL == "" {
		return 0, rec.awaitUpload(ctx, img)
	}
	if !mine {
		return 0, nil
	}
	if have, _, err := rec.find(ctx, api.ImageID(id)); err == nil {
		return 0, rec.writeStatus(ctx, img, ready(have, rec.o.NodeID))
	}
	if wait, held := rec.hold(img.Status.Retry, rec.triedImport(img), retryThere); held {
		return wait, nil
	}
	err := rec.jobs.startImport(ctx, img.Meta.Organization, "import "+id, key(api.KindImage, id), func(ctx context.Context) error {
		err := rec.importImage(ctx, img, sds.ImageImport{URL: img.Spec.URL})
		var f *importFailed
		if errors.As(err, &f) { // the status says it, and when it is tried again
			rec.log.Warn("import image failed", "id", id, "error", err)
			return nil
		}
		return err
	})
	return time.Second, err
}

// importFailed is an import's failure that the image's status says.
type importFailed struct{ error }

func (f *importFailed) Unwrap() error { return f.error }

// failedImport is the status after an import has failed. What failed at a URL is
// tried again, unless it would give the same answer.
func (rec *imageReconciler) failedImport(img api.Image, err error) api.ImageStatus {
	st := api.ImageStatus{Phase: api.ImageFailed, Node: rec.o.NodeID, LastError: plainly(err)}
	of := rec.triedImport(img)
	switch code := api.CodeOf(err); {
	case img.Spec.URL == "": // the bytes have to be sent again
	case code == api.CodeUnavailable || code == api.CodeInternal:
		st.Retry = img.Status.Retry.After(img.Meta.ID, of, rec.o.Now(), retryThere)
	default:
		st.Retry = img.Status.Retry.Last(of)
	}
	return st
}

// triedImport is what a try of the import is of. A node that is alone begins before
// the planner says that it is to: that is the same try.
func (rec *imageReconciler) triedImport(img api.Image) string {
	as := img.Assignment
	if as.Node == "" {
		as.Node = rec.o.NodeID
	}
	return api.Tried(img.Meta, as)
}

// awaitUpload returns what became of an upload that a restart has ended, or of one
// whose node is lost: the bytes must come again.
func (rec *imageReconciler) awaitUpload(ctx context.Context, img api.Image) error {
	id := api.ImageID(img.Meta.ID)
	st := img.Status
	began := st.Phase == api.ImageImporting
	switch {
	case began && st.Node == rec.o.NodeID:
		if rec.importing(img.Meta.ID) {
			return nil
		}
		if have, _, err := rec.find(ctx, id); err == nil {
			return rec.writeStatus(ctx, img, ready(have, rec.o.NodeID))
		}
	case began && rec.members.away(st.Node), st.Phase == "":
		if !rec.members.onDuty() {
			return nil
		}
	default:
		return nil
	}
	// Of the image as it was seen, and not once more (writeStatus): meanwhile another
	// node may have been sent the bytes.
	return rec.report(ctx, api.KindImage, img.Meta.ID, img.Meta.Revision, api.ImageStatus{Phase: api.ImagePending})
}

// end deletes this node's copies.
func (rec *imageReconciler) end(ctx context.Context, img api.Image) (time.Duration, error) {
	id := api.ImageID(img.Meta.ID)
	if rec.jobs.stop("import " + img.Meta.ID) {
		return time.Second, nil
	}
	for _, p := range rec.pools.inOrder() {
		err := p.DeleteImage(ctx, id)
		if api.CodeOf(err) == api.CodeInUse { // volumes of it are being deleted
			return time.Second, nil
		}
		if err != nil && api.CodeOf(err) != api.CodeNotFound {
			return 0, err
		}
	}
	if img.Status.Node != "" && !rec.members.away(img.Status.Node) {
		if img.Status.Node != rec.o.NodeID {
			return 0, nil
		}
	} else if !rec.members.onDuty() {
		return 0, nil
	}
	return 0, rec.forget(ctx, api.KindImage, img.Meta.ID)
}

// put takes an image's bytes from a client.
func (rec *imageReconciler) put(ctx context.Context, id api.ImageID, content io.Reader) error {
	o, err := rec.o.Store.Get(ctx, api.KindImage, string(id))
	if err != nil {
		return err
	}
	rec.takeObject(o)
	img, err := api.Decode[api.Image](o)
	if err != nil {
		return err
	}
	switch {
	case img.Status.Phase == api.ImageReady:
		return api.Errorf(api.CodeState, "image %s is already imported", img.Meta.Name).WithHint("import it with another name")
	case img.Status.Phase == api.ImageImporting && img.Status.Node != rec.o.NodeID && !rec.members.away(img.Status.Node):
		return api.Errorf(api.CodeState, "image %s is being copied to another node", img.Meta.Name)
	}
	err = rec.importImage(ctx, img, sds.ImageImport{Content: content})
	var f *importFailed
	if errors.As(err, &f) {
		return f.error
	}
	return err
}

func (rec *imageReconciler) importing(id string) bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.running[id]
}

func (rec *imageReconciler) importImage(ctx context.Context, img api.Image, in sds.ImageImport) error {
	id := img.Meta.ID
	rec.mu.Lock()
	if rec.running[id] {
		rec.mu.Unlock()
		return api.Errorf(api.CodeState, "image %s is already being imported", img.Meta.Name)
	}
	rec.running[id] = true
	rec.mu.Unlock()
	defer func() {
		rec.mu.Lock()
		delete(rec.running, id)
		rec.mu.Unlock()
	}()

	again := img.Spec.URL != "" && img.Status.Retry.Stands(rec.triedImport(img)) // it stays Failed until it is there
	if !again {
		if err := rec.writeStatus(ctx, img, api.ImageStatus{Phase: api.ImageImporting, Node: rec.o.NodeID}); err != nil {
			return err
		}
	}
	last := rec.o.Now()
	in.ID, in.Format, in.SHA256 = api.ImageID(id), sds.Format(img.Spec.Format), img.Spec.Sha256
	in.Progress = func(n int64) {
		if now := rec.o.Now(); !again && now.Sub(last) >= 2*time.Second {
			last = now
			if err := rec.writeStatus(ctx, img, api.ImageStatus{Phase: api.ImageImporting, Node: rec.o.NodeID, ProgressBytes: n}); err != nil {
				rec.log.Warn("report", "id", id, "error", err)
			}
		}
	}
	pool, err := rec.pools.driver(rec.pools.home())
	if err != nil {
		return err
	}
	have, err := pool.ImportImage(ctx, in)
	if err != nil {
		rec.log.Warn("import image failed", "id", id, "error", err) // the status may say less
		// The caller may be gone; the status must still tell the truth.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if said := rec.writeStatus(ctx, img, rec.failedImport(img, err)); said != nil {
			rec.log.Warn("report", "id", id, "error", said)
			return err
		}
		return &importFailed{err}
	}
	return rec.writeStatus(ctx, img, ready(have, rec.o.NodeID))
}

func ready(have sds.Image, node api.NodeID) api.ImageStatus {
	return api.ImageStatus{Phase: api.ImageReady, Node: node, Sha256: have.SHA256, SizeBytes: have.SizeBytes,
		VirtualBytes: have.VirtualBytes, ProgressBytes: have.SizeBytes}
}

// writeStatus reports a status for whoever brings an image in: a conflict is a
// change of something else, or another's word that it waits for its bytes: once
// more.
func (rec *imageReconciler) writeStatus(ctx context.Context, img api.Image, st api.ImageStatus) error {
	var err error
	for range 3 {
		if now, ok := get(rec.cache, rec.cache.images, img.Meta.ID); ok {
			img = now
		}
		if reflect.DeepEqual(img.Status, st) {
			return nil
		}
		if err = rec.report(ctx, api.KindImage, img.Meta.ID, img.Meta.Revision, st); !errors.Is(err, errStale) {
			return err
		}
	}
	return err
}
