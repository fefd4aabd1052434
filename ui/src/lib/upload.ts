// A file as the body of a request, with how much of it is sent, which fetch
// does not tell.
import { ApiError, base, type ErrorBody } from '../api/client';

export function upload(path: string, file: File, onSent: (bytes: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const r = new XMLHttpRequest();
    r.open('PUT', base + path);
    r.setRequestHeader('Content-Type', 'application/octet-stream');
    r.upload.onprogress = (e) => onSent(e.loaded);
    r.onerror = () => reject(new ApiError({ code: 'unreachable', message: '' }));
    r.onload = () => {
      if (r.status < 300) return resolve();
      let body: Partial<ErrorBody> = {};
      try {
        body = JSON.parse(r.responseText) as Partial<ErrorBody>;
      } catch {
        // a proxy's page: its status says all there is
      }
      reject(new ApiError({ code: body.code ?? 'internal', message: body.message ?? `HTTP ${r.status}`, hint: body.hint, field: body.field }));
    };
    r.send(file);
  });
}
