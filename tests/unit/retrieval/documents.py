"""Documents written out by hand, for the tests of readers and folders."""

from __future__ import annotations


def pdf(pages: list[str], title: str = "") -> bytes:
    """A PDF of one line of Latin-1 text a page, as ISO 32000-1, 7.5, describes it."""
    kids = " ".join(f"{4 + 2 * place} 0 R" for place in range(len(pages)))
    objects = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    }
    for place, text in enumerate(pages):
        number = 4 + 2 * place
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects[number] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {number + 1} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects[number + 1] = f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream"
    info = max(objects) + 1
    objects[info] = f"<< /Title ({title}) >>"
    return _assembled(objects, info)


def _assembled(objects: dict[int, str], info: int) -> bytes:
    out, places = b"%PDF-1.4\n", []
    for number, body in sorted(objects.items()):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R /Info {info} 0 R >>\n"
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}"
    return out + f"{tail}startxref\n{len(out)}\n%%EOF\n".encode("latin-1")


def locked(content: bytes, password: str) -> bytes:
    """The PDF `content`, encrypted so that `password` opens it."""
    import io

    from pypdf import PdfReader, PdfWriter

    writer, out = PdfWriter(clone_from=PdfReader(io.BytesIO(content))), io.BytesIO()
    writer.encrypt(password, algorithm="RC4-128")
    writer.write(out)
    return out.getvalue()
