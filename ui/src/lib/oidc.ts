// A sign-in with an identity provider leaves the portal and returns to /login/oidc?state=…&code=…. The sealed flow
// is kept in this tab.
const flowKey = 'basalt.oidc.flow';

export interface Return {
  flow: string;
  state: string;
  code: string;
}

let returned: Return | undefined;

export const redirectAddress = () => `${location.origin}/login/oidc`;
export const keepFlow = (flow: string) => sessionStorage.setItem(flowKey, flow);

/** keepReturn stores the provider's response once, and removes it from the address. */
export function keepReturn(): void {
  if (location.pathname !== '/login/oidc') return;
  const q = new URLSearchParams(location.search);
  returned = { flow: sessionStorage.getItem(flowKey) ?? '', state: q.get('state') ?? '', code: q.get('code') ?? '' };
  sessionStorage.removeItem(flowKey);
  history.replaceState(null, '', '/#/sso');
}

/** takeReturn returns the provider's response. */
export function takeReturn(): Return | undefined {
  const r = returned;
  returned = undefined;
  return r;
}
