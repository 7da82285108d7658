// The published OpenID provider `oidc-provider`, with three people and sign-in by code.
//
//   node provider.mjs PORT     (SIGN_IN_NODE: where the package is installed)
//
// People are added and removed with PUT and DELETE /test/people/NAME, whose body is a list of groups.
// What a browser does on the provider's own pages is in browser.mjs.
import { createRequire } from 'node:module'
import { createServer } from 'node:http'
import { pathToFileURL } from 'node:url'

const require = createRequire(`${process.env.SIGN_IN_NODE}/`)
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')).href)

const port = Number(process.argv[2])
const issuer = `http://127.0.0.1:${port}`
const people = new Map([['ann', ['ml', 'everybody']], ['bob', ['audit']], ['eve', []]])

const provider = new Provider(issuer, {
  clients: ['dayfly', 'another'].map((client_id) => ({
    client_id,
    token_endpoint_auth_method: 'none',
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    redirect_uris: [],
    response_types: [],
  })),
  findAccount: (_, name) => people.has(name) && {
    accountId: name,
    claims: () => ({
      sub: name, groups: people.get(name), email: `${name}@example.com`, email_verified: true,
    }),
  },
  claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'] },
  // Claims in the ID token, as most providers have it.
  conformIdTokenClaims: false,
  features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true } },
  ttl: { DeviceCode: 60, IdToken: 120 },
})

const handle = provider.callback()
const server = createServer(async (request, response) => {
  const named = request.url.match(/^\/test\/people\/(\w+)$/)
  if (!named) {
    return handle(request, response)
  }
  let body = ''
  for await (const piece of request) {
    body += piece
  }
  if (request.method === 'PUT') {
    people.set(named[1], JSON.parse(body))
  } else {
    people.delete(named[1])
  }
  response.writeHead(204).end()
})
server.listen(port, '127.0.0.1', () => console.log('ready'))
