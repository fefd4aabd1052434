// A sign-in with an identity provider leaves the portal and returns to /login/oidc?state=…&code=…. The sealed flow
// is kept in this tab, and so is the provider whose test it is.
const flowKey = 'basalt.oidc.flow';
const testKey = 'basalt.oidc.test';

export interface Return {
  flow: string;
  state: string;
  code: string;
}

let returned: Return | undefined;
let tested: { provider: string; back: Return } | undefined;

export const redirectAddress = () => `${location.origin}/login/oidc`;

/** keepFlow keeps the flow of a sign-in, or of a test of the provider with this ID. */
export function keepFlow(flow: string, test = '') {
  sessionStorage.setItem(flowKey, flow);
  sessionStorage.setItem(testKey, test);
}

/** testAddress is the address of the page that shows the result of a provider's test. */
export const testAddress = (provider: string) => `/identity-providers/${provider}/test`;

/** keepReturn stores the provider's response once, and removes it from the address. */
export function keepReturn(): void {
  if (location.pathname !== '/login/oidc') return;
  const q = new URLSearchParams(location.search);
  const back = { flow: sessionStorage.getItem(flowKey) ?? '', state: q.get('state') ?? '', code: q.get('code') ?? '' };
  const provider = sessionStorage.getItem(testKey);
  sessionStorage.removeItem(flowKey);
  sessionStorage.removeItem(testKey);
  if (provider) tested = { provider, back };
  else returned = back;
  history.replaceState(null, '', provider ? `/#${testAddress(provider)}` : '/#/sso');
}

/** takeReturn returns the provider's response. */
export function takeReturn(): Return | undefined {
  const r = returned;
  returned = undefined;
  return r;
}

/** returnOfTest returns the provider's response to its test, if it has just returned from one. */
export const returnOfTest = (provider: string): Return | undefined =>
  tested?.provider === provider ? tested.back : undefined;
