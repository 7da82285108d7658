// What a person does in a browser: opens the page with the code, signs in, agrees.
//
//   node browser.mjs PAGE NAME
const [page, name] = process.argv.slice(2)
const cookies = new Map()

async function ask(address, form) {
  for (let step = 0; step < 10; step++) {
    const response = await fetch(address, {
      method: form ? 'POST' : 'GET',
      body: form,
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([key, value]) => `${key}=${value}`).join('; ') },
    })
    for (const line of response.headers.getSetCookie()) {
      const [, key, value] = line.match(/^([^=]+)=([^;]*)/)
      if (value) {
        cookies.set(key, value)
      } else {
        cookies.delete(key)
      }
    }
    const next = response.headers.get('location')
    if (!next) {
      return { address, status: response.status, text: await response.text() }
    }
    address = new URL(next, address).href
    form = undefined
  }
  throw new Error('too many redirects')
}

// The fields of the first form that has more than a button, and where it goes.
function formOf({ address, text }) {
  const form = text.match(/<form[^>]*action="([^"]*)"[^>]*>([\s\S]*?)<\/form>/)
  if (!form) {
    return undefined
  }
  const fields = new URLSearchParams()
  for (const [tag] of form[2].matchAll(/<(?:input|button)[^>]*>/g)) {
    const field = tag.match(/name="([^"]*)"/)
    if (field) {
      fields.set(field[1], tag.match(/value="([^"]*)"/)?.[1] ?? '')
    }
  }
  return { action: new URL(form[1], address).href, fields }
}

let seen = await ask(page)
for (let step = 0; step < 6; step++) {
  const form = formOf(seen)
  if (!form) {
    break
  }
  if (form.fields.has('login')) {
    form.fields.set('login', name)
    form.fields.set('password', 'any')
  }
  form.fields.delete('abort')
  seen = await ask(form.action, form.fields)
}
console.log(JSON.stringify({ status: seen.status, says: seen.text.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').slice(-200) }))
