// What the form that creates an instance holds.
import type { Instance } from '../api/client';
import { withPassword } from './password';

export const gib = 2 ** 30;

export interface Draft {
  name: string;
  project: string;
  /** An app's name, or empty: then the image is chosen. */
  app: string;
  image: string;
  flavor: string;
  vgpu: boolean;
  pool: string;
  vramGib: string;
  share: string;
  network: string;
  keys: string;
  userData: string;
  /** For the console; empty: none. */
  password: string;
}

/**
 * instanceOf a draft: what is sent, and what the command and curl say. A password
 * joins the user data, or else the app's.
 */
export function instanceOf(d: Draft, ofApp = ''): Instance {
  const userData = d.password ? withPassword(d.userData || ofApp, d.password) : d.userData;
  const sshKeys = d.keys.split('\n').map((k) => k.trim()).filter(Boolean);
  return {
    kind: 'Instance',
    meta: { name: d.name.trim(), project: d.project },
    spec: {
      flavor: d.flavor,
      ...(d.app ? { app: d.app } : { image: d.image }),
      ...(d.vgpu && { vgpu: { vramBytes: Math.round(Number(d.vramGib) * gib), sharePercent: Number(d.share), ...(d.pool && { pool: d.pool }) } }),
      ...(d.network && { networks: [{ network: d.network }] }),
      ...(sshKeys.length > 0 && { sshKeys }),
      ...(userData && { userData }),
    },
  };
}
