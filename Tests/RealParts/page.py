"""Drives Chromium over the page of a report: its layout, its accessibility, its filters and its requests."""
import json, sys
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

page_file, chromium = sys.argv[1:3]
address = "file://" + page_file
errors, requests, dialogs, violations = [], [], [], set()
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    for scheme in ("light", "dark"):
        for width, medium in ((360, "screen"), (820, "screen"), (1440, "screen"), (820, "print")):
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme,
                                          bypass_csp=True)
            page = context.new_page()
            page.goto(address)
            page.emulate_media(media=medium, color_scheme=scheme)
            page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                violations.add(f"{scheme} {width} {medium}: wider than the screen")
            # On paper a finding is a row of a table, not a card.
            if medium == "print" and page.evaluate("getComputedStyle(document.querySelector('#table')).display") != "table":
                violations.add(f"{scheme} {width} {medium}: cards on paper")
            # The content of a card must not overflow it.
            if page.evaluate("""[...document.querySelectorAll('#table td')].some(cell => [...cell.querySelectorAll('*')]
                    .some(part => part.getClientRects().length
                      && part.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1))"""):
                violations.add(f"{scheme} {width} {medium}: content overflows its cell")
            results = Axe().run(page)
            for violation in results.response["violations"]:
                if violation["impact"] in ("serious", "critical"):
                    violations.add(f"{scheme} {width} {medium}: {violation['id']}: "
                                   + "; ".join(node["html"][:120] for node in violation["nodes"][:3]))
            context.close()
    # Tables may scroll in their frames, but the page must not scroll sideways, whatever people have entered.
    page = browser.new_page()
    page.goto(address)
    page.evaluate("""document.querySelectorAll('#table tbody tr').forEach(row => {
        for (const [label, text] of [["Order", "7f3d9c1e-5b2a-4c8d-9e6f-0a1b2c3d4e5f"], ["Amount at risk", "1,234,567.00 CNY"],
            ["Status", "acknowledged"], ["Owner", "payments-operations@example.com"], ["Due", "2026-11-30"]])
          row.querySelector(`[data-label="${label}"]`).textContent = text })""")
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    for width in [*range(360, 1401, 40), 833, 1279, 1391, 1392]:
        page.set_viewport_size({"width": width, "height": 900})
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            violations.add(f"{width}: wider than the screen")
    page.close()
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url) if request.url != address else None)
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(address)
    count = lambda: page.locator("#table tbody tr:visible").count()
    shown = {"all": count()}
    page.select_option("#severity", "critical")
    shown["critical"] = count()
    page.select_option("#currency", "JPY")
    shown["jpy"] = count()
    page.select_option("#currency", "")
    page.fill("#amount", "8.02")
    shown["least"] = count()
    page.fill("#amount", "")
    page.select_option("#severity", "")
    for name, value in (("new", "new"), ("owner", "Dana"), ("owner", "-"), ("status", "acknowledged"), ("status", "open")):
        page.select_option("#" + name, value)
        shown[name + " " + value] = count()
        page.select_option("#" + name, "")
    page.fill("#search", "o4")
    shown["search"] = count()
    page.click("button[type=reset]")
    page.wait_for_function("[...document.querySelectorAll('#table tbody tr')].every(row => !row.hidden)")
    shown["reset"] = count()
    page.click("button[data-key=kind]")
    page.click("button[data-key=stake]")
    rows = page.eval_on_selector_all("#table tbody tr", "rows => rows.map(row => row.dataset.stake)")
    page.locator("details").first.click()
    browser.close()
rows = sorted(rows, key=lambda text: rows.index(text))
json.dump({"errors": errors, "requests": requests, "dialogs": len(dialogs), "shown": shown, "sorted": rows,
           "violations": sorted(violations)}, sys.stdout)
